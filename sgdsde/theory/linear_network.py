"""Deep linear networks W_D … W_1 at their noise equilibrium.

y = Vx + ε, W_D…W_1 = V. With A_i = W_i…W_1 Σ_x^{1/2}, B_i = Σ_ε^{1/2} W_D…W_{i+1}, s_i = ‖A_i‖², t_i = ‖B_i‖² the noise
of layer i is Tr Σ_{W_i} = 4 t_i s_{i-1}, and every pair of neighbours balances where, at γ = 0,

    t_{i+1} A_i A_iᵀ = s_{i-1} B_iᵀ B_i,   i = 1 … D-1.

With a = Tr Σ_ε, b = Tr Σ_x, Σ_ε^{1/2} V Σ_x^{1/2} = P S Rᵀ, τ = Tr S and κ = (τ²/(ab))^{1/D} the solutions are

    W_1 = √(bκ/τ) O_1 S^{1/2} Rᵀ Σ_x^{-1/2},   W_i = √κ O_i O_{i-1}ᵀ,   W_D = √(aκ/τ) Σ_ε^{-1/2} P S^{1/2} O_{D-1}ᵀ,

O_iᵀO_i = I otherwise free: inner layers are √κ times partial isometries, all alike, the first and the last are not;
the noise is the same in every layer, 4(ab)^{1/D} τ^{2-2/D}. L. Ziyin et al., arXiv:2402.07193, Sec. 5, in words and for
γ = 0; the closed form is derived here, and for D = 2 it is that of `balance`. With weight decay there is none for
D > 2, and `orbit_equilibrium` goes there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ModelError, ShapeError
from sgdsde.theory.balance import split
from sgdsde.theory.task import LinearTask, root, semidefinite, spectrum

__all__ = [
    "DeepLayers",
    "active_norms",
    "deep_linear_equilibrium",
    "layer_noise",
    "orbit_equilibrium",
    "pair_residuals",
    "read_layers",
]


@dataclass(frozen=True, eq=False)
class DeepLayers:
    """A deep linear network at equilibrium.

    Attributes
    ----------
    weights : list of arrays
        W_1 … W_D, W_i of shape (n_i, n_{i-1}).
    kappa : float
        κ: each inner layer has r singular values √κ; also Tr[W_1Σ_xW_1ᵀ]/Tr Σ_x = Tr[W_DᵀΣ_εW_D]/Tr Σ_ε = κ. NaN with
        weight decay.
    noise : (D,) array
        Tr Σ_{W_i}.
    potential : float
        F = 2γ‖θ‖² + σ²Tr Σ (with γ = 0, σ² = 1: Tr Σ).
    """

    weights: list[np.ndarray]
    kappa: float
    noise: np.ndarray
    potential: float

    @property
    def theta(self) -> np.ndarray:
        """[W_1, …, W_D] raveled, as `DeepLinear` has it."""
        return np.concatenate([W.ravel() for W in self.weights])

    @property
    def norms(self) -> np.ndarray:
        """‖W_i‖², (D,)."""
        return np.array([np.sum(W * W) for W in self.weights])


def read_layers(task: LinearTask, weights: Sequence[Any]) -> list[np.ndarray]:
    """W_1 … W_D, checked against each other and the task."""
    if not isinstance(task, LinearTask):
        raise ArgumentError(f"task must be a LinearTask, got {_check.show(task)}")
    layers = [_check.array(f"weights[{i}]", W, ("n_out", "n_in")) for i, W in enumerate(weights)]
    sizes = [task.V.shape[1], *(W.shape[0] for W in layers)]
    if not layers or sizes[-1] != task.V.shape[0] or any(W.shape[1] != n for W, n in zip(layers, sizes)):
        raise ShapeError(
            f"weights must map {task.V.shape[1]} inputs to {task.V.shape[0]} outputs, got shapes "
            f"{[W.shape for W in layers]}"
        )
    return layers


def forward(task: LinearTask, weights: list[np.ndarray]) -> list[np.ndarray]:
    """A_iA_iᵀ = E h_ih_iᵀ for i = 0 … D."""
    out = [task.Sigma_x]
    for W in weights:
        out.append(W @ out[-1] @ W.T)
    return out


def backward(task: LinearTask, weights: list[np.ndarray], outer: np.ndarray | None = None) -> list[np.ndarray]:
    """B_iᵀB_i for i = 0 … D, with `outer` for Σ_ε."""
    out = [task.Sigma_eps if outer is None else outer]
    for W in reversed(weights):
        out.append(W.T @ out[-1] @ W)
    return out[::-1]


def layer_noise(task: LinearTask, weights: Sequence[Any]) -> np.ndarray:
    """Tr Σ_{W_i} = 4·scale² t_i s_{i-1} at W_D…W_1 = V, (D,): the gradient noise of each layer."""
    layers = read_layers(task, weights)
    s, t = ([float(np.trace(M)) for M in run(task, layers)] for run in (forward, backward))
    return 4.0 * task.scale**2 * np.array([t[i] * s[i - 1] for i in range(1, len(layers) + 1)])


def pair_residuals(
    task: LinearTask, weights: Sequence[Any], *, gamma: float = 0.0, sigma2: float = 1.0
) -> list[tuple[np.ndarray, float]]:
    """W_i K̃ W_iᵀ - W_{i+1}ᵀ K̃' W_{i+1} of each pair, and its norm over that of the sum: zeros at equilibrium.

    K̃ = γI + 2σ²·scale² t_{i+1} A_{i-1}A_{i-1}ᵀ and K̃' = γI + 2σ²·scale² s_{i-1} B_{i+1}ᵀB_{i+1}: the equations of
    `balance`, and at γ = 0 those above.
    """
    layers = read_layers(task, weights)
    out = []
    for i in range(1, len(layers)):
        right, left = _pair(task, layers, i, gamma, sigma2)
        first, second = layers[i - 1] @ right @ layers[i - 1].T, layers[i].T @ left @ layers[i]
        total = float(np.linalg.norm(first + second))
        out.append((first - second, float(np.linalg.norm(first - second)) / total if total > 0 else 0.0))
    return out


def _pair(task: LinearTask, layers: list[np.ndarray], i: int, gamma: float, sigma2: float) -> tuple[Any, Any]:
    """K̃ and K̃' of layers i, i + 1 (counted from 1)."""
    A, B = forward(task, layers[: i - 1])[-1], backward(task, layers[i + 1 :])[0]
    c = 2.0 * sigma2 * task.scale**2
    right = gamma * np.eye(len(A)) + c * float(np.trace(B)) * A
    left = gamma * np.eye(len(B)) + c * float(np.trace(A)) * B
    return right, left


def deep_linear_equilibrium(
    task: LinearTask, depth: int, *, hidden: Sequence[int] | int | None = None, rotations: Sequence[Any] | None = None
) -> DeepLayers:
    """W_1 … W_D with W_D…W_1 = V at which noise balances every pair of layers (γ = 0), in closed form.

    Parameters
    ----------
    task : LinearTask
        With Σ_x and Σ_ε positive definite.
    depth : int
        D >= 2.
    hidden : int or sequence of D - 1 int, optional
        Hidden widths, at least r = rank V, which is the default.
    rotations : sequence of D - 1 arrays, optional
        O_i (n_i, r) with orthonormal columns; the first columns of identities by default.

    Returns
    -------
    DeepLayers

    Notes
    -----
    In hidden layers wider than r, weights that the input does not feed or the output does not see have neither gradient
    nor noise, and stay what they were (any γ > 0 removes them). They are zero here; `active_norms` sets them apart in a
    run.

    Examples
    --------
    >>> task = LinearTask(np.diag([2.0, 1.0]), np.eye(2), np.eye(2))
    >>> deep = deep_linear_equilibrium(task, 4)
    >>> np.round(deep.norms, 4), np.round(deep.noise, 4)
    (array([2.4495, 2.4495, 2.4495, 2.4495]), array([29.3939, 29.3939, 29.3939, 29.3939]))
    >>> np.allclose(np.linalg.multi_dot(deep.weights[::-1]), task.V)
    True
    """
    if not isinstance(task, LinearTask):
        raise ArgumentError(f"task must be a LinearTask, got {_check.show(task)}")
    D = _check.count("depth", depth, least=2)
    x, x_inverse = root(semidefinite("Sigma_x", task.Sigma_x, task.V.shape[1], definite=True))
    e, e_inverse = root(semidefinite("Sigma_eps", task.Sigma_eps, task.V.shape[0], definite=True))
    P, S, R = spectrum(e @ task.V @ x)
    r, tau = S.size, float(S.sum())
    if r == 0:
        raise ModelError("deep_linear_equilibrium needs V != 0")
    widths = [hidden] * (D - 1) if isinstance(hidden, int) else [r] * (D - 1) if hidden is None else list(hidden)
    if len(widths) != D - 1:
        raise ArgumentError(f"hidden must hold {D - 1} widths for depth {D}, got {len(widths)}")
    widths = [_check.count("hidden", n, least=r) for n in widths]
    given = [np.eye(n, r) for n in widths] if rotations is None else list(rotations)
    if len(given) != D - 1:
        raise ArgumentError(f"rotations must hold {D - 1} matrices for depth {D}, got {len(given)}")
    O = [_check.array(f"rotations[{i}]", g, (n, r)) for i, (g, n) in enumerate(zip(given, widths))]
    for i, o in enumerate(O):
        if not np.allclose(o.T @ o, np.eye(r), atol=1e-10):
            raise ArgumentError(f"rotations[{i}] must have orthonormal columns")
    a, b = task.noise, task.power
    kappa = (tau * tau / (a * b)) ** (1.0 / D)
    half = np.sqrt(S)
    first = np.sqrt(b * kappa / tau) * O[0] @ (half[:, None] * R.T) @ x_inverse
    last = np.sqrt(a * kappa / tau) * e_inverse @ (P * half) @ O[-1].T
    weights = [first, *(np.sqrt(kappa) * O[i] @ O[i - 1].T for i in range(1, D - 1)), last]
    noise = np.full(D, 4.0 * task.scale**2 * (a * b) ** (1.0 / D) * tau ** (2.0 - 2.0 / D))
    return DeepLayers(weights, kappa, noise, float(noise.sum()))


def orbit_equilibrium(
    task: LinearTask,
    weights: Sequence[Any],
    *,
    gamma: float = 0.0,
    sigma2: float = 1.0,
    tolerance: float = 1e-13,
    most: int = 10_000,
) -> DeepLayers:
    """The minimum of F = 2γΣ‖W_i‖² + 4σ²·scale² Σ t_i s_{i-1} over the networks with the product of `weights`.

    Parameters
    ----------
    task : LinearTask
        The noise at W_D…W_1 = V; with weight decay the product of `weights` may differ a little from V.
    weights : sequence of D >= 2 arrays
    gamma, sigma2 : float
    tolerance : float
        On the largest relative residual of a pair.
    most : int
        Sweeps, at most.

    Returns
    -------
    DeepLayers

    Raises
    ------
    ArgumentError
        Where no minimum exists: at γ = 0 a hidden layer wider than the signal through it.
    ModelError
        Not converged after `most` sweeps.

    Notes
    -----
    With all other layers held, F of two neighbours is the problem of `balance` and is solved in closed form; sweeps
    over the pairs lower F each time, at the cost of D small SVDs. F is convex along one-parameter subgroups of the
    orbit, so its critical points are minima.

    Examples
    --------
    >>> task = LinearTask(np.diag([2.0, 1.0]), np.diag([1.0, 2.0]), np.diag([1.0, 0.1]))
    >>> found = orbit_equilibrium(task, [np.diag([4.0, 1.0]), np.eye(2), np.diag([0.5, 1.0])])
    >>> bool(np.allclose(found.potential, deep_linear_equilibrium(task, 3).potential))
    True
    """
    layers = read_layers(task, weights)
    gamma, sigma2 = _check.number("gamma", gamma, least=0.0), _check.positive("sigma2", sigma2)
    if len(layers) < 2:
        raise ArgumentError("weights must hold at least two layers")
    for _ in range(_check.count("most", most)):
        for i in range(1, len(layers)):
            right, left = _pair(task, layers, i, gamma, sigma2)
            names = f"the noise into layer {i}", f"the noise out of layer {i + 1}"
            right = semidefinite(names[0], right, len(right), definite=True)
            left = semidefinite(names[1], left, len(left), definite=True)
            hidden = layers[i - 1].shape[0]
            layers[i - 1], layers[i], _ = split(layers[i] @ layers[i - 1], right, left, hidden)
        if max(ratio for _, ratio in pair_residuals(task, layers, gamma=gamma, sigma2=sigma2)) <= tolerance:
            break
    else:
        raise ModelError(f"orbit_equilibrium did not converge in {most} sweeps")
    noise = layer_noise(task, layers)
    F = 2.0 * gamma * sum(float(np.sum(W * W)) for W in layers) + sigma2 * float(noise.sum())
    return DeepLayers(layers, np.nan, noise, F)


def active_norms(weights: Sequence[Any], tolerance: float = 1e-8) -> tuple[np.ndarray, np.ndarray]:
    """‖W_i‖² on what the input feeds and the output sees, and the rest, (D,) each.

    At rest the two are the same directions of each hidden layer, and what is outside has neither gradient nor noise.
    A direction counts as fed (or seen) if the product of the layers before (or after) has a singular value above
    `tolerance` times its largest there.
    """
    if isinstance(weights, str) or not isinstance(weights, Sequence) or not len(weights):
        raise ArgumentError(f"weights must be a sequence of matrices, one for each layer, got {_check.show(weights)}")
    layers = [_check.array(f"weights[{i}]", W, ("n_out", "n_in")) for i, W in enumerate(weights)]
    for i, (below, above) in enumerate(pairwise(layers)):
        if above.shape[1] != below.shape[0]:
            raise ShapeError(f"weights[{i + 1}] must have {below.shape[0]} columns, got shape {above.shape}")
    fed, seen = [np.eye(layers[0].shape[1])], [np.eye(layers[-1].shape[0])]
    for W, back in zip(layers, reversed(layers)):
        fed.append(W @ fed[-1])
        seen.append(seen[-1] @ back)
    active = []
    for W, before, after in zip(layers, fed, seen[-2::-1]):
        U, s, _ = np.linalg.svd(before, full_matrices=False)
        _, z, Vt = np.linalg.svd(after, full_matrices=False)
        U, Vt = U[:, s > tolerance * s.max(initial=0.0)], Vt[z > tolerance * z.max(initial=0.0)]
        active.append(float(np.sum((Vt @ W @ U) ** 2)))
    total = np.array([np.sum(W * W) for W in layers])
    return np.array(active), total - np.array(active)
