"""A control variate for E f(θ(t1)), of mean zero: the first order of f in the noise.

Along the path θ̄ without noise, u_k = f(θ̄_n) as a function of θ̄_k, ψ_k = ∇u_k, the first order is
Z = Σ_k ψ_{k+1}·(θ_{k+1} - θ_k - f(θ_k)h). SGD (and SVAG) with independent batches and Euler-Maruyama have
E[θ_{k+1}|θ_k] = θ_k + f(θ_k)h, so Z has mean zero whatever ψ is, and f(θ(t1)) - Z has a spread of second order in the
noise. (J. C. Newton, SIAM J. Appl. Math. 54 (1994) 1730, with the solution of the Kolmogorov equation in place of u.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sgdsde._abi import INCREMENT
from sgdsde._address import address
from sgdsde.run.watching import Watcher

__all__ = ["NAME", "Control", "controllable"]

NAME = "first order in the noise"
STEP = 1e-5
"""Of differences, relative to the size of the state."""
WITHOUT_MEMORY = ("sgd", "svag", "euler-maruyama")


def controllable(scheme: Any, problem: Any) -> bool:
    """Whether a step has the mean θ + f(θ)h given θ."""
    return scheme.name in WITHOUT_MEMORY and problem.sampling != "epochs"


class Control:
    """A track with one row for each function, for n_steps equal steps from theta0 over t_span."""

    def __init__(
        self, of: dict[str, Callable[[np.ndarray], Any]], theta0: np.ndarray, t_span: tuple[float, float], n_steps: int
    ) -> None:
        self.of, self.theta0, self.n_steps = of, theta0, n_steps
        self.t0, self.h = t_span[0], (t_span[1] - t_span[0]) / n_steps
        self.name = NAME

    def __track__(self, equation: Any, scheme: Any) -> Watcher:
        """The TRACK kernel; asked for by the runner."""
        from sgdsde.comparison._control_kernel import HEADER, linear

        if equation.calculus == "discrete":  # the mean of a step is that of the SDE's
            equation = equation.problem.replace(optimizer=None).sde()
        kernels = equation.kernels()
        psi = self._weights(kernels)
        fixed, per_path = kernels.work
        words = address(kernels.increment, INCREMENT)
        p = np.concatenate([[self.t0, self.h, self.n_steps, *map(float, words)], kernels.p])
        assert p.size == HEADER + kernels.p.size
        data = np.concatenate([psi.ravel(), kernels.data])
        work = fixed, per_path + self.theta0.size
        return Watcher(linear, p, data, len(self.of), work, kernels.increment)

    def _weights(self, kernels: Any) -> np.ndarray:
        """ψ (n_steps, n_functions, d); a Jacobian of a gradient is symmetric, so ψ_k = ψ_{k+1} + h(∇f)ψ_{k+1}.

        Where the path without noise leaves the finite numbers ψ is zero, and so is Z.
        """
        path = np.empty((self.n_steps + 1, self.theta0.size))
        path[0] = self.theta0
        with np.errstate(all="ignore"):
            for k in range(self.n_steps):
                path[k + 1] = path[k] + self.h * self._drift(kernels, path[k][:, None], k)[:, 0]
            psi = np.empty((self.n_steps, len(self.of), self.theta0.size))
            along = self._gradients(path[-1])
            for k in reversed(range(self.n_steps)):
                psi[k] = along
                if k:
                    along = along + self.h * self._curved(kernels, path[k], along, k)
        return psi if np.isfinite(psi).all() else np.zeros_like(psi)

    def _gradients(self, theta: np.ndarray) -> np.ndarray:
        """(n_functions, d) by central differences."""
        step = STEP * (1.0 + float(np.abs(theta).max()))
        if not np.isfinite(theta).all():
            return np.full((len(self.of), theta.size), np.nan)
        around = theta + step * np.concatenate([np.eye(theta.size), -np.eye(theta.size)])
        ahead, behind = np.split(np.stack([np.asarray(f(around), float).ravel() for f in self.of.values()]), 2, axis=1)
        return (ahead - behind) / (2 * step)

    def _curved(self, kernels: Any, theta: np.ndarray, along: np.ndarray, k: int) -> np.ndarray:
        size = np.linalg.norm(along, axis=1)
        scale = np.divide(STEP * (1.0 + np.linalg.norm(theta)), size, out=np.zeros_like(size), where=size > 0)
        shift = (scale[:, None] * along).T
        ahead, behind = (self._drift(kernels, theta[:, None] + sign * shift, k) for sign in (1.0, -1.0))
        return np.divide((ahead - behind).T, 2 * scale[:, None], out=np.zeros_like(along), where=scale[:, None] > 0)

    def _drift(self, kernels: Any, x: np.ndarray, k: int) -> np.ndarray:
        n = x.shape[1]
        x, out = np.ascontiguousarray(x), np.empty(x.shape)
        work = np.zeros(kernels.work[0] + kernels.work[1] * n)
        t = np.full(n, self.t0 + k * self.h)
        kernels.increment(out, x, t, np.ones(n), np.zeros((0, n)), kernels.p, kernels.data, work)
        return out
