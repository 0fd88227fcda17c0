"""Antisymmetric generators: no charge θᵀAθ, but angles in the planes that A rotates, and θᵀAᵀdθ = 0."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import schur

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.algebra import Affine, Generator, linear_and_shift
from sgdsde.run.watching import Watcher
from sgdsde.symmetry.charges import as_generator

__all__ = ["Angles", "Plane"]

EPS = float(np.finfo(float).eps)


class Plane(NamedTuple):
    """A plane of A: Ap = ωq, Aq = -ωp with ω > 0 and p, q orthonormal, (d,)."""

    omega: float
    p: np.ndarray
    q: np.ndarray


class Angles:
    """The polar angle φ = atan2(q·θ, p·θ) in each plane (p, q) that an antisymmetric A rotates.

    For A = -Aᵀ the form θᵀAθ is zero for every θ, and there is no charge. What a symmetry of every sample's loss keeps
    is an identity between increments, taken at the start of a step:

        (Aθ)·Δθ = Σ_k ω_k r_k r_k' sin(φ_k' - φ_k) = 0

    in every step of SGD and of Euler-Maruyama, with weight decay too, and in gradient flow and the SDE, where it reads
    Σ_k ω_k r_k² dφ_k = 0. With a single plane (a rotation of two coordinates) the angle itself does not move, exactly,
    until r passes zero, where it turns by π.

    Parameters
    ----------
    generator : Generator, Affine or (d, d) array_like
        Antisymmetric A. With a constant b, a rotation around the point c where Ac + b = 0.
    name : str, optional

    Attributes
    ----------
    planes : tuple of Plane
        By falling ω. Where several planes turn equally fast, which planes these are is a convention (each p is the
        first coordinate direction that the plane sees); their sum in the identity is not.
    centre : (d,) array
        c; zero without b.

    Raises
    ------
    ArgumentError
        A is not antisymmetric, is zero, or b is not in its range: a screw motion, of which `circulation` is the law.

    Notes
    -----
    The angle is sometimes written log|u| - log|w| (from θᵀAᵀdθ = u dw - w du). That is the logarithm of |cot φ|: it has
    no value on the axes, and does not see that (u, w) and (-u, w) are different, or that (u, w) went to (-u, -w).

    The planes come from a real Schur form, d³ operations on the block that A acts on.

    Examples
    --------
    >>> from sgdsde.algebra import rotation
    >>> angle = Angles(rotation(3, 0, 1))
    >>> angle([0.0, 2.0, 5.0]).round(6), angle.radii([0.0, 2.0, 5.0])
    (array([1.570796]), array([2.]))
    >>> angle.identity([1.0, 1.0, 0.0], [0.5, 0.5, 7.0])  # along the radius, and out of the plane
    0.0
    """

    def __init__(self, generator: Any, name: str | None = None) -> None:
        generator = as_generator(generator, affine=True)
        linear, shift = linear_and_shift(generator)
        if not linear.is_antisymmetric or linear.norm == 0.0:
            hint = "; it has a charge, see Charge" if linear.is_symmetric and linear.norm > 0.0 else ""
            raise ArgumentError(f"generator must be antisymmetric and not zero, got {generator!r}{hint}")
        self.generator: Generator | Affine = generator
        self.name = str(name) if name is not None else f"angle[{generator.name}]" if generator.name else "angle"
        self.planes = _planes(linear)
        self.centre = np.zeros(linear.dim)
        if shift is not None:
            for omega, p, q in self.planes:  # A(αp + βq) = αωq - βωp
                self.centre += (-(q @ shift) * p + (p @ shift) * q) / omega
            rest = linear.apply(self.centre) + shift
            if np.linalg.norm(rest) > 64 * linear.dim * EPS * np.linalg.norm(shift):
                raise ArgumentError(
                    f"generator must have a fixed point, and {generator!r} moves along its axis as it turns: "
                    "its law is that of circulation(solution, J)"
                )
        self._p, self._q = np.array([p.p for p in self.planes]), np.array([p.q for p in self.planes])
        self._omega = np.array([p.omega for p in self.planes])

    def __repr__(self) -> str:
        return f"Angles({self.generator!r}, {len(self.planes)} {'plane' if len(self.planes) == 1 else 'planes'})"

    def _coordinates(self, theta: Any) -> tuple[np.ndarray, np.ndarray]:
        theta = _check.array("theta", theta, finite=False)
        if theta.ndim == 0 or theta.shape[-1] != self.centre.size:
            raise ShapeError(f"theta must have shape (..., {self.centre.size}), got {theta.shape}")
        theta = theta - self.centre
        return theta @ self._p.T, theta @ self._q.T

    def __call__(self, theta: Any) -> np.ndarray:
        """φ_k in (-π, π] for θ (..., d), shape (..., planes); NaN where r_k = 0."""
        x, y = self._coordinates(theta)
        return np.where((x == 0) & (y == 0), np.nan, np.arctan2(y, x))

    def radii(self, theta: Any) -> np.ndarray:
        """r_k, shape (..., planes)."""
        return np.hypot(*self._coordinates(theta))

    def along(self, trajectory: Any) -> np.ndarray:
        """φ_k along a run without jumps of 2π, shape (..., n_times, planes).

        Each change is taken in (-π, π], so a run should be saved densely enough to turn less than half a circle between
        two times.

        Parameters
        ----------
        trajectory : Solution or (..., n_times, d) array_like
        """
        states = np.asarray(trajectory.y if hasattr(trajectory, "y") else trajectory)
        x, y = self._coordinates(states)
        if x.ndim < 2:
            raise ShapeError(f"trajectory must have shape (..., n_times, {self.centre.size}), got {states.shape}")
        start = np.where((x == 0) & (y == 0), np.nan, np.arctan2(y, x))[..., :1, :]
        cross = x[..., :-1, :] * y[..., 1:, :] - y[..., :-1, :] * x[..., 1:, :]
        dot = x[..., :-1, :] * x[..., 1:, :] + y[..., :-1, :] * y[..., 1:, :]
        return np.concatenate([start, start + np.cumsum(np.arctan2(cross, dot), axis=-2)], axis=-2)

    def identity(self, theta: Any, delta: Any) -> Any:
        """(Aθ)·Δθ = Σ_k ω_k r_k r_k' sin(φ_k' - φ_k), shape (...): zero for a step of SGD or Euler-Maruyama.

        `theta` (..., d) is the start of a step, `delta` (..., d) the step. With a centre c of its own it is
        -2γh c·Aθ, what weight decay does, which pulls to zero and not to c.
        """
        x, y = self._coordinates(theta)
        delta = _check.array("delta", delta, finite=False)
        if delta.ndim == 0 or delta.shape[-1] != self.centre.size:
            raise ShapeError(f"delta must have shape (..., {self.centre.size}), got {delta.shape}")
        value = np.sum(self._omega * (x * (delta @ self._q.T) - y * (delta @ self._p.T)), axis=-1)
        return float(value) if value.ndim == 0 else value

    def identity_along(self, trajectory: Any) -> np.ndarray:
        """`identity` of each increment of a Solution or of states (..., n_times, d), shape (..., n_times - 1)."""
        states = np.asarray(trajectory.y if hasattr(trajectory, "y") else trajectory)
        if states.ndim < 2:
            raise ShapeError(f"trajectory must have shape (..., n_times, d), got {states.shape}")
        return np.asarray(self.identity(states[..., :-1, :], np.diff(states, axis=-2)))

    def __observe__(self, equation: Any) -> Watcher:
        """The angles at the saved times of a run, `observe=angles`: a call into Python."""
        from sgdsde.run.python_observer import PythonObserver, python_observe

        if equation.dim != self.centre.size:
            raise ArgumentError(f"{self.name} acts on {self.centre.size} components, the equation has {equation.dim}")
        observer = PythonObserver(self.name, lambda t, y: self(y), (), len(self.planes))
        return Watcher(python_observe, observer.p(), np.zeros(1), len(self.planes), (0, 0), observer)


def _planes(linear: Generator) -> tuple[Plane, ...]:
    found = []
    for start, block in linear.parts:
        a = block.matrix
        form, vectors = schur((a - a.T) / 2, output="real")
        k = 0
        while k + 1 < len(a):
            omega = form[k + 1, k]
            if abs(omega) <= 64 * len(a) * EPS * linear.norm:
                k += 1
                continue
            basis = vectors[:, k : k + 2]
            # The first coordinate that the plane sees gives the direction of angle zero.
            seen = np.linalg.norm(basis, axis=1)
            p = basis @ basis[int(np.argmax(seen > 0.5 * seen.max()))]
            p /= np.linalg.norm(p)
            q = basis @ (basis.T @ (a @ p))
            q /= np.linalg.norm(q)
            whole = np.zeros((2, linear.dim))
            whole[:, start : start + len(a)] = p, q
            found.append(Plane(float(abs(omega)), *whole))
            k += 2
    return tuple(sorted(found, key=lambda plane: -plane.omega))
