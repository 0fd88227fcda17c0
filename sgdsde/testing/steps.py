"""One-step enumeration: every batch that SGD can draw, every sign vector, through the package's own compiled kernels.

A mean over all batches, all with one probability, is the exact mean of a step of SGD. A mean over all sign vectors is
the exact mean of anything quadratic in Gaussian noise, and the nodes of a three-point rule do it to degree five.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.run.solving import solve
from sgdsde.testing._scales import needs_samples

__all__ = ["all_batches", "all_signs", "batch_steps", "gauss_nodes", "sde_steps"]

MOST = 4096
"""Cases that are enumerated at most."""


def count_batches(problem: Any) -> int:
    """How many batches SGD can draw: N^S, or C(N, S) without replacement."""
    needs_samples(problem, "a batch")
    n, size = problem.n_samples, problem.batch_size
    return n**size if problem.replacement else math.comb(n, size)


def all_batches(problem: Any) -> np.ndarray:
    """Every batch that SGD can draw, (n, S) indices, each with probability 1/n: N^S, or C(N, S) without replacement.

    Raises
    ------
    ArgumentError
        If there are more than 4096.
    """
    count, n, size = count_batches(problem), problem.n_samples, problem.batch_size
    if count > MOST:
        raise ArgumentError(f"problem has {count} batches and at most {MOST} are enumerated: take fewer samples")
    drawn = itertools.product(range(n), repeat=size) if problem.replacement else itertools.combinations(range(n), size)
    return np.array(list(drawn), dtype=np.int64).reshape(count, size)


def batch_steps(problem: Any, theta: Any, batches: Any) -> np.ndarray:
    """The states after one step of SGD from θ with each of the batches, (n, d), by the model's STEP kernel.

    Parameters
    ----------
    problem : SGD
    theta : (d,) array_like
    batches : (n, S) array_like of int
    """
    batches = np.asarray(batches, dtype=np.float64)
    if problem.optimizer is not None or problem.label_noise is not None:
        raise ArgumentError(f"problem must be plain SGD to enumerate its steps, got {problem!r}")
    if batches.shape[1:] != (problem.batch_size,) or not np.isin(batches, np.arange(problem.n_samples)).all():
        raise ArgumentError(f"batches must hold {problem.batch_size} of {problem.n_samples} indices in each row")
    return run_steps(problem, _check.array("theta", theta, (problem.model.dim,)), batches)


def run_steps(problem: Any, theta: np.ndarray, drawn: Any) -> np.ndarray:
    """The states after one step from θ, (n, d), with what the STEP kernel of the recursion is to find drawn, (n, r)."""
    recursion = problem.recursion()
    scheme, kernels = recursion.scheme, recursion.kernels()
    aux = np.ascontiguousarray(np.asarray(drawn, dtype=np.float64).T)
    n, h = aux.shape[1], problem.learning_rate * (1.0 if problem.optimizer is None else problem.optimizer.pace)
    data = kernels.data
    if scheme.prepare is not None:
        data = np.concatenate([data, scheme.prepare(recursion, kernels, 0.0, theta, h)])
    x = np.ascontiguousarray(np.repeat(theta[:, None], n, axis=1))
    fixed, per_path = scheme.work(theta.size, 0)
    lengths, work, status = np.full(n, h), np.empty(fixed + per_path * n), np.zeros(2 * n, np.int64)
    scheme.step(
        kernels.increment, kernels.correction, x, np.zeros(n), lengths, np.zeros((0, n)), aux, status, work,
        kernels.p, data,
    )  # fmt: skip
    return np.ascontiguousarray(x.T)


def all_signs(m: int) -> np.ndarray:
    """All 2^m vectors of ±1, (2^m, m); at most 4096.

    >>> all_signs(1)
    array([[-1.],
           [ 1.]])
    """
    if 2**m > MOST:
        raise ArgumentError(f"m must be at most {MOST.bit_length() - 1} to enumerate 2^m sign vectors, got {m}")
    return np.array(list(itertools.product([-1.0, 1.0], repeat=m))).reshape(2**m, m)


def gauss_nodes(m: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (3^m, m) and weights (3^m,) that integrate polynomials of degree 5 over N(0, I) exactly; 3^m <= 4096.

    >>> nodes, weights = gauss_nodes(2)
    >>> (weights @ nodes[:, 0]**4).round(12), (weights @ (nodes[:, 0] * nodes[:, 1])**2).round(12)
    (np.float64(3.0), np.float64(1.0))
    """
    if 3**m > MOST:
        raise ArgumentError(f"m must be at most 7 to enumerate 3^m nodes, got {m}")
    nodes = np.array(list(itertools.product([-math.sqrt(3.0), 0.0, math.sqrt(3.0)], repeat=m))).reshape(3**m, m)
    return nodes, np.where(nodes == 0.0, 2.0 / 3.0, 1.0 / 6.0).prod(axis=1)


def sde_steps(problem: Any, theta: Any, dW: Any, dt: float | None = None, factor: Any = None) -> np.ndarray:
    """Euler-Maruyama paths of the SDE of SGD with given noise, (n, n_steps + 1, d), by `solve`.

    Parameters
    ----------
    problem : SGD
    theta : (d,) array_like
    dW : (n, n_steps, m) array_like
        Brownian increments: of variance `dt` to be those of the SDE.
    dt : float, optional
        Default the learning rate.
    factor : as in `SGD.sde`
    """
    dW = _check.array("dW", dW, ("n", "n_steps", "m"))
    h = problem.learning_rate if dt is None else _check.positive("dt", dt)
    n, n_steps, m = dW.shape
    sde = problem.sde(factor)
    if n_steps == 1 and m == 0:
        raise ArgumentError("dW must have a column for each Brownian motion, got none")
    return solve(sde, (0.0, n_steps * h), theta, dt=h, n_paths=n, dW=dW, t_eval="steps", threads=1).y
