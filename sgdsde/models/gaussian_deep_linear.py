"""`DeepLinear` on a Gaussian law of the data: whatever needs a mean over samples in closed form, without samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ModelError, ShapeError
from sgdsde.algebra import Generator
from sgdsde.datasets.gaussian_teacher import GaussianTeacher
from sgdsde.models.charge_rows import CHARGE_ROWS
from sgdsde.models.deep_linear import DeepLinear, _packed
from sgdsde.models.model import Compiled, Samples
from sgdsde.run.watching import Watcher

__all__ = ["GaussianDeepLinear"]

NOISES_AT_ONCE = 256


class GaussianDeepLinear(DeepLinear):
    """The model that `SGD(DeepLinear(dims), GaussianTeacher(…))` works with.

    L(θ) = scale·(‖C‖² + Tr Σ_ε), C = (W_D … W_1 - V)L, LLᵀ = Σ_x. Its factor "gaussian" has k(k + 1)/2 + rk columns, k
    and r the ranks of Σ_x and Σ_ε, and is exact (`gaussian_kernels`); a step of the SDE passes k rows through the
    layers and multiplies k × k by k × n_D, beside the draw of the noise.
    """

    factors = ("gaussian",)

    @property
    def plain(self) -> DeepLinear:
        """The same network for samples X and Y."""
        return DeepLinear(self.dims, self.scale)

    def __repr__(self) -> str:
        return repr(self.plain)

    # --- kernels and their arrays -------------------------------------------------------------------------------------

    def samples(self, X: Any, Y: Any) -> Samples:
        """X a `GaussianTeacher` with d_x = n_0 and d_y = n_D, Y None."""
        if not isinstance(X, GaussianTeacher) or Y is not None:
            raise ModelError("X must be a GaussianTeacher, and Y None, for the model of a law; use models.DeepLinear")
        wanted = (self.dims[-1], self.dims[0])
        if X.V.shape != wanted:
            raise ShapeError(f"V of the GaussianTeacher must have shape {wanted} for {self!r}, got {X.V.shape}")
        k, r = X.root_x.shape[1], X.root_eps.shape[1]
        if k == 0:
            raise ModelError(
                "Sigma_x of the GaussianTeacher must not be zero: every input, and every gradient, is zero"
            )
        data = [X.root_x.T.ravel(), (X.V @ X.root_x).T.ravel(), X.root_eps.T.ravel()]
        return Samples(X, None, 0, np.array([0.0, self.scale, self.depth, *self.dims, k, r]), np.concatenate(data))

    def compiled(self, factor: str | None = None) -> Compiled:
        """The kernels; those of single samples are those of `DeepLinear`, for the batches that SGD draws."""
        from sgdsde.models.gaussian_kernels import increment
        from sgdsde.models.gaussian_spread import correction

        return super().compiled()._replace(increment=increment, correction=correction)

    def noise(self, factor: str, samples: Samples) -> tuple[int, str]:
        """k(k + 1)/2 + rk Brownian motions."""
        k, r = self._ranks(samples)
        m = k * (k + 1) // 2 + r * k
        return m, "scalar" if m == 1 else "general"

    def work(self, n: int) -> tuple[int, int]:
        """As that of `DeepLinear`, and what passes over the columns of L need, k <= n_0 and r <= n_D."""
        k, r = self.dims[0], self.dims[-1]
        widest, largest = max(self.dims), max(a * b for a, b in self._matrices)
        acts, uppers = k * sum(self.dims[1:]), r * sum(self.dims[1:])
        step = 2 * self.dim + largest + k * k + 2 * k * r + acts
        spread = 2 * acts + 2 * uppers + (2 * k + r) * widest + max(largest, widest**2)
        charge = acts + uppers + (k + r + 2 * widest) * widest + max(k + r, widest) * widest + largest
        return max(super().work(n)[0], step, 2 * self.dim + spread, 4 * self.dim + charge), 0

    # --- closed forms -------------------------------------------------------------------------------------------------

    def loss(self, theta: Any, samples: Samples) -> Any:
        """L(θ) = scale·(‖C‖² + Tr Σ_ε), shape (...)."""
        law = samples.X

        def one(x: np.ndarray) -> float:
            misfit = (self._chain(x) - law.V) @ law.root_x
            return self.scale * float(np.sum(misfit**2) + np.trace(law.Sigma_eps))

        return self._each(theta, one, ())

    def gradient(self, theta: Any, samples: Samples) -> np.ndarray:
        """∇L(θ), shape (..., d)."""
        return self._each(theta, lambda x: self._increment(x, -1.0, None, samples)[:, 0], (self.dim,))

    def hessian_vector(self, theta: Any, v: Any, samples: Samples, c: Any = None) -> np.ndarray:
        """∇²L v, shape (d,), exact."""
        theta = self.check_theta(theta, one=True)
        v = _check.array("v", v, (self.dim,), finite=False)
        if c is not None:
            self._needs_samples(samples, "weighted second derivatives")
        law = samples.X
        W, dW = list(self.unflatten(theta).values()), list(self.unflatten(v).values())
        lower, d_lower = [law.root_x], [np.zeros_like(law.root_x)]
        for w, dw in zip(W, dW, strict=True):
            d_lower.append(dw @ lower[-1] + w @ d_lower[-1])
            lower.append(w @ lower[-1])
        C, dC = lower[-1] - law.V @ law.root_x, d_lower[-1]
        b, db = np.eye(self.dims[-1]), np.zeros((self.dims[-1],) * 2)
        blocks = []
        for l in range(self.depth - 1, -1, -1):
            a, da = lower[l], d_lower[l]
            blocks.append(db.T @ C @ a.T + b.T @ dC @ a.T + b.T @ C @ da.T)
            b, db = b @ W[l], db @ W[l] + b @ dW[l]
        return 2.0 * self.scale * np.concatenate([block.ravel() for block in reversed(blocks)])

    def hessian_trace(self, theta: Any, samples: Samples) -> float:
        """Tr ∇²L = 2·scale·Σ_l ‖W_{l-1} … W_1 L‖²‖W_D … W_{l+1}‖²."""
        W = list(self.unflatten(self.check_theta(theta, one=True)).values())
        lower, upper = [samples.X.root_x], [np.eye(self.dims[-1])]
        for w in W[:-1]:
            lower.append(w @ lower[-1])
        for w in reversed(W[1:]):
            upper.append(upper[-1] @ w)
        pairs = zip(lower, reversed(upper), strict=True)
        return 2.0 * self.scale * float(sum(np.sum(a**2) * np.sum(b**2) for a, b in pairs))

    def factor(self, theta: Any, samples: Samples, name: str | None = None) -> np.ndarray:
        """G (d, m) with GGᵀ = Σ(θ), columns in the order of z_1², z_1z_2, …, z_k², ε_1z_1, …, ε_rz_k."""
        _check.choice("factor", self.factors[0] if name is None else name, self.factors)
        theta = self.check_theta(theta, one=True)
        return np.concatenate(list(self._columns(theta, samples)), axis=1)

    def covariance(self, theta: Any, samples: Samples, block: str | None = None) -> np.ndarray:
        """Σ(θ) (d, d), or its diagonal block for the array named `block`."""
        at = slice(None) if block is None else self.places()[_check.choice("block", block, self.shapes)]
        theta = self.check_theta(theta, one=True)
        return sum(g[at] @ g[at].T for g in self._columns(theta, samples))

    def gradient_moments(
        self, theta: Any, samples: Samples, transform: Callable[[np.ndarray], np.ndarray] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean (d,) and variance (d,) of the gradient of one sample, in another basis."""
        turn = self._turn(transform)
        theta = self.check_theta(theta, one=True)
        var = np.zeros(self.dim)
        for g in self._columns(theta, samples):
            var += np.square(turn(np.ascontiguousarray(g.T))).sum(axis=0)
        return turn(self.gradient(theta, samples)[None])[0], var

    def charge_track(self, generator: Generator, gamma: float, X: Any, Y: Any) -> Watcher | None:
        """The charge law of a generator that acts on each layer as W ↦ L W + W R; None for another."""
        layers = generator.layers(self._matrices)
        if layers is None:
            return None
        from sgdsde.models.gaussian_spread import charge_law

        samples = self.samples(X, Y)
        head = [[_check.number("gamma", gamma, least=0.0)], samples.numbers, [generator.norm]]
        return Watcher(charge_law, np.concatenate([*head, *_packed(layers)]), samples.data, CHARGE_ROWS, self.work(0))

    def charge_traces(self, generators: Sequence[Generator], X: Any, Y: Any) -> Watcher | None:
        """None: a pass over the law costs little, and each generator has its own."""
        return None

    # --- helpers ------------------------------------------------------------------------------------------------------

    def _chain(self, theta: np.ndarray) -> np.ndarray:
        product = np.eye(self.dims[0])
        for w in self.unflatten(theta).values():
            product = w @ product
        return product

    def _ranks(self, samples: Samples) -> tuple[int, int]:
        return samples.X.root_x.shape[1], samples.X.root_eps.shape[1]

    def _increment(self, theta: np.ndarray, h: float, v: np.ndarray | None, samples: Samples) -> np.ndarray:
        """-h∇L + G·v for each column of v (m, n), (d, n)."""
        v = np.empty((0, 1)) if v is None else np.ascontiguousarray(v)
        n = v.shape[1]
        out, x = np.empty((self.dim, n)), np.ascontiguousarray(np.tile(theta[:, None], (1, n)))
        p = np.concatenate([[0.0, 1.0], samples.numbers])
        work = np.empty(self.work(0)[0])
        self.compiled().increment(out, x, np.zeros(n), np.full(n, h), v, p, samples.data, work)
        return out

    def _columns(self, theta: np.ndarray, samples: Samples) -> Iterator[np.ndarray]:
        """G, some columns at a time."""
        m = self.noise("gaussian", samples)[0]
        for start in range(0, m, NOISES_AT_ONCE):
            n = min(NOISES_AT_ONCE, m - start)
            yield self._increment(theta, 0.0, np.eye(m, n, -start), samples)
