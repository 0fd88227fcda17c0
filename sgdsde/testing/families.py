"""Laws of one family of models: the product uw, and two linear layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde._errors import ArgumentError
from sgdsde.models import DeepLinear, Product
from sgdsde.symmetry import Charge
from sgdsde.testing._holding import hold
from sgdsde.testing._scales import EPS, ROUNDING, gradient_sizes, needs_samples, noise_of, read
from sgdsde.testing.steps import all_batches, batch_steps, sde_steps

__all__ = ["assert_layer_balance", "assert_uw_law"]


def assert_uw_law(problem: Any, theta: Any, dW: Any = None) -> float:
    """C' = C((1 - 2ηγ)² - ĉ²), C = u² - w², ĉ = η·∂ℓ̂/∂(uw): SGD on ℓ(uw) shrinks |C| as long as ĉ² < 2.

    And the same of Euler-Maruyama with ĉ = h·mean - √(2σ²ρ)·std·dW of ∂ℓ/∂(uw). Source: Ziyin et al. 2023 (arXiv
    2308.06671, corollary 3.3), exact in discrete time.

    Parameters
    ----------
    problem : SGD
        Of `models.Product()`, with samples.
    theta : (2,) array_like
    dW : (n, 1) array_like, optional
        Default ±√η and 0.

    Notes
    -----
    Tolerance 16·eps·(u² + w²)(1 + c)², c = the largest that |ĉ| could be if nothing in it cancelled; for the SDE
    also 16·√eps·(u² + w²)c², from the square root of a variance (see `assert_euler_maruyama_law`).
    """
    needs_samples(problem, "this law")
    if not isinstance(problem.model, Product) or problem.model.dim != 2 or problem.model.width != 1:
        raise ArgumentError(f"problem must be of models.Product(), got {problem.model!r}")
    u, w = theta = np.asarray(theta, dtype=np.float64)
    X, Y, eta = np.ravel(problem.X), np.ravel(problem.Y), problem.learning_rate
    decay = 1 - 2 * eta * problem.gamma
    slope = 2 * problem.model.scale * (u * w * X - Y) * X
    largest = np.max(2 * problem.model.scale * (np.abs(u * w * X) + np.abs(Y)) * np.abs(X))
    batches = all_batches(problem)
    dW = np.sqrt(eta) * np.array([[-1.0], [0.0], [1.0]]) if dW is None else np.asarray(dW, dtype=np.float64)
    driven = np.sqrt(noise_of(problem)) * dW[:, 0]
    square, words = u * u + w * w, {"problem": problem, "theta": theta}

    def follows(law: str, states: np.ndarray, c: np.ndarray, most: Any, root: float, **where: Any) -> float:
        tolerance = 16 * EPS * square * (1 + most) ** 2 + 16 * root * square * most**2
        wanted = (u - w) * (u + w) * (decay**2 - c**2)
        return hold(law, states[:, 0] ** 2 - states[:, 1] ** 2, wanted, tolerance, **words, **where)

    law, c = "C' = C((1-2ηγ)² - ĉ²)", eta * slope[batches].mean(axis=1)
    sgd = follows(law, batch_steps(problem, theta, batches), c, eta * largest, 0.0, batch=lambda i: batches[i[0]])
    c, most = eta * slope.mean() - driven * slope.std(), (eta + np.abs(driven)) * largest
    paths = sde_steps(problem, theta, dW[:, None, :], eta, "rank-one")[:, 1]
    return max(sgd, follows(law + " for the SDE", paths, c, most, np.sqrt(EPS), dW=lambda i: dW[i[0]]))


def assert_layer_balance(problem: Any, theta: Any, B: Any) -> float:
    """Q = UᵀU - WWᵀ of two linear layers: C_B = Tr[BQ], and Q' = (1 - 2ηγ)²Q + η²(ĝ_Uᵀĝ_U - ĝ_Wĝ_Wᵀ) entry by entry.

    h(h + 1)/2 charges at once, for every batch. Its drift under the SDE is
    -4γQ + 8σ²ρs²{W(E[‖r‖²xxᵀ] - MᵀM)Wᵀ - Uᵀ(E[‖x‖²rrᵀ] - MMᵀ)U}, r = UWx - y, M = E[rxᵀ], s the loss's scale. Source:
    the balance of layers is conserved by gradient flow (Du, Hu, Lee 2018, arXiv 1806.00900); its noise term Ziyin et
    al. 2024 (arXiv 2402.07193).

    Parameters
    ----------
    problem : SGD
        Of `models.DeepLinear([n_0, h, n_2])`.
    theta : (d,) array_like
    B : (h, h) array_like
        Symmetric.

    Notes
    -----
    Tolerance 64·d·eps·(‖θ‖ + η·max‖g_i‖)², times ‖B‖ for C_B; 1e-12·‖B‖(4γ‖θ‖² + 2σ²ρ·max‖g_i‖²) for the drift.
    """
    needs_samples(problem, "this law")
    model = problem.model
    if not isinstance(model, DeepLinear) or model.depth != 2:
        raise ArgumentError(f"problem must be of models.DeepLinear([n_0, h, n_2]), got {model!r}")
    a, x = read(problem, model.generator(B), theta)
    B, eta, batches = np.asarray(B, dtype=np.float64), problem.learning_rate, all_batches(problem)
    W, U = model.unflatten(x).values()
    r = problem.X @ (U @ W).T - np.reshape(problem.Y, (len(problem.X), -1))
    states = batch_steps(problem, x, batches)
    balance = _balance(model, states)
    wanted = (1 - 2 * eta * problem.gamma) ** 2 * _balance(model, x)
    wanted = wanted + eta**2 * _balance(model, problem.per_sample_gradients(x)[batches].mean(axis=1))
    largest = gradient_sizes(problem, x).max()
    rounding = ROUNDING * a.dim * (np.linalg.norm(x) + eta * largest) ** 2
    words = {"problem": problem, "theta": x, "B": B}

    def drawn(index: tuple[int, ...]) -> np.ndarray:
        return batches[index[0]]

    n, X = len(r), problem.X
    M = r.T @ X / n
    inner = (X.T * (r**2).sum(axis=1)) @ X / n - M.T @ M
    outer = (r.T * (X**2).sum(axis=1)) @ r / n - M @ M.T
    pull = 4 * noise_of(problem) * model.scale**2 * (W @ inner @ W.T - U.T @ outer @ U)
    drift = float(np.sum(B * (-4 * problem.gamma * _balance(model, x) + pull)))
    loose = 1e-12 * a.norm * (4 * problem.gamma * (x @ x) + noise_of(problem) * largest**2)
    return max(
        hold("Q' = (1-2ηγ)²Q + η²(ĝ_Uᵀĝ_U - ĝ_Wĝ_Wᵀ)", balance, wanted, rounding, **words, batch=drawn),
        hold("C_B = Tr[BQ]", Charge(a)(states), np.einsum("ij,nij->n", B, balance), a.norm * rounding, **words),
        hold("rate of C_B = Tr[B·drift of Q]", Charge(a).rate(problem, x), drift, loose, **words),
    )


def _balance(model: DeepLinear, theta: np.ndarray) -> np.ndarray:
    W, U = model.unflatten(theta).values()
    return np.swapaxes(U, -1, -2) @ U - W @ np.swapaxes(W, -1, -2)
