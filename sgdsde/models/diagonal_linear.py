"""DiagonalLinear: f(x) = Σ_j v_j x_j, every v_j a sum of products of factors of its own, with squared loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ModelError, ShapeError
from sgdsde.algebra import Diagonal, Generator, Scattered
from sgdsde.models.charge_rows import CHARGE_ROWS
from sgdsde.models.linear_symmetry import product_pairs
from sgdsde.models.model import Compiled, Model, Samples
from sgdsde.models.naming import Family, Named
from sgdsde.models.packing import pack
from sgdsde.models.population import Population
from sgdsde.models.product import Product
from sgdsde.run.watching import Watcher

__all__ = ["DiagonalLinear"]


class DiagonalLinear(Model):
    """A diagonal linear network, f(x) = Σ_j v_j x_j with v_j = Σ_i Π_k u_ji^(k), ℓ_i = scale·(f(x_i) - y_i)².

    Parameters
    ----------
    n_inputs : int
        n. `DiagonalLinear(n)` is linear regression on v = u^(1)⊙u^(2) in place of v.
    depth : int
        D, the number of factors of a product; 1 is linear regression itself.
    width : int
        How many products add up to one v_j.
    scale : float
        Multiplies the loss, which has no ½.

    Notes
    -----
    θ = [W1, …, WD], W_k = (u_ji^(k)) of shape (n, width), or a vector where one of the two is 1. Data are X (N, n) and
    Y (N,). A step of the SDE is one pass over the samples, 2nN multiplications; Hessian times vector, Tr H, ‖∇ℓ_i‖² and
    the correction are closed forms of one or two such passes.

    One input makes it `Product(width, depth)`: six moments of the data stand for all samples, X may be a `Population`,
    and the noise is one Brownian motion, G = 2·scale·√q(v)·∇v (Ziyin, Li, Ueda, arXiv 2308.06671).

    Examples
    --------
    >>> model = DiagonalLinear(3, depth=2)
    >>> model, model.shapes
    (DiagonalLinear(3, depth=2), {'W1': (3,), 'W2': (3,)})
    >>> model.coefficients([1.0, 2.0, 3.0, 1.0, 1.0, -1.0])
    array([ 1.,  2., -3.])
    >>> list(model.symmetries())
    ['W1/W2', 'W1/W2[0]', 'W1/W2[1]', 'W1/W2[2]']
    >>> DiagonalLinear(1, depth=3, width=2).factors
    ('rank-one', 'per-sample')
    """

    def __init__(self, n_inputs: int, depth: int = 2, width: int = 1, scale: float = 1.0) -> None:
        self.n_inputs = _check.count("n_inputs", n_inputs)
        self.depth = _check.count("depth", depth)
        self.width = _check.count("width", width)
        self.scale = _check.positive("scale", scale)
        self.dim = self.n_inputs * self.width * self.depth
        shape = tuple(k for k in (self.n_inputs, self.width) if k > 1) or (1,)
        self.shapes = {f"W{k}": shape for k in range(1, self.depth + 1)}
        self._one = Product(self.width, self.depth, self.scale) if self.n_inputs == 1 else None
        self.factors = Model.factors if self._one is None else self._one.factors
        self.block = 1 if self._one is None else self._one.block

    def __repr__(self) -> str:
        width = "" if self.width == 1 else f", width={self.width}"
        scale = "" if self.scale == 1.0 else f", scale={self.scale:g}"
        return f"DiagonalLinear({self.n_inputs}, depth={self.depth}{width}{scale})"

    def fan_in(self, name: str) -> int:
        """1 but for the last factor, whose products are summed over inputs and width: f is then O(1)."""
        return self.n_inputs * self.width if name == f"W{self.depth}" else 1

    # --- kernels and their arrays -------------------------------------------------------------------------------------

    def samples(self, X: Any, Y: Any) -> Samples:
        """X (N, n) and Y (N,) or (N, 1); of one input also X (N,), or a `Population` for X and None for Y."""
        if self._one is not None:
            return self._one.samples(X, Y)
        if Y is None:
            why = "; laws of the data are of one input" if isinstance(X, Population) else ""
            raise ModelError(f"{self!r} needs samples X and Y, got X alone ({_check.show(X)}){why}")
        X, Y, data = pack(X, Y, self.n_inputs, 1)
        n = X.shape[0]
        numbers = np.array([n, self.scale, self.n_inputs, self.width, self.depth], dtype=np.float64)
        return Samples(X, Y, n, numbers, data)

    def compiled(self, factor: str | None = None) -> Compiled:
        """The kernels; of one input `factor` chooses the increment."""
        if self._one is not None:
            return self._one.compiled(factor)
        from sgdsde.models import diagonal_linear_kernels as k
        from sgdsde.models import diagonal_linear_second as s

        first = (k.weighted, k.sample, k.losses, k.increment)
        return Compiled(*first, s.correction, k.step, s.hessian, s.hessian_traces, s.gradient_norms)

    def noise(self, factor: str, samples: Samples) -> tuple[int, str]:
        """N for "per-sample", one noise for "rank-one" of one input."""
        return super().noise(factor, samples) if self._one is None else self._one.noise(factor, samples)

    def work(self, n: int) -> tuple[int, int]:
        """Weights of n samples, and a few vectors of d and of n_inputs numbers."""
        if self._one is not None:
            return self._one.work(n)
        return n + 2 * self.dim + 5 * self.n_inputs + 2 * self.n_inputs * self.width, 0

    # --- gradients ----------------------------------------------------------------------------------------------------

    def coefficients(self, theta: Any) -> np.ndarray:
        """v, shape (..., n) for θ of shape (..., d): the network is x ↦ v·x."""
        theta = self.check_theta(theta)
        u = theta.reshape(*theta.shape[:-1], self.depth, self.n_inputs, self.width)
        return u.prod(axis=-3).sum(axis=-1)

    def loss(self, theta: Any, samples: Samples) -> Any:
        """L(θ), without weight decay; of one input also of a population."""
        return super().loss(theta, samples) if self._one is None else self._one.loss(theta, samples)

    def gradient(self, theta: Any, samples: Samples) -> np.ndarray:
        """∇L(θ), without weight decay, shape (..., d)."""
        return super().gradient(theta, samples) if self._one is None else self._one.gradient(theta, samples)

    def factor(self, theta: Any, samples: Samples, name: str | None = None) -> np.ndarray:
        """G with GGᵀ = Σ: (d, N) for "per-sample", (d, 1) for "rank-one"."""
        made = super().factor if self._one is None else self._one.factor
        return made(theta, samples, name)

    def hessian_vector(self, theta: Any, v: Any, samples: Samples, c: Any = None) -> np.ndarray:
        """Σ_i c_i ∇²ℓ_i(θ) v, shape (d,); ∇²L v without c."""
        made = super().hessian_vector if self._one is None else self._one.hessian_vector
        return made(theta, v, samples, c)

    def hessian_trace(self, theta: Any, samples: Samples) -> float:
        """Tr ∇²L(θ)."""
        return super().hessian_trace(theta, samples) if self._one is None else self._one.hessian_trace(theta, samples)

    def covariance(self, theta: Any, samples: Samples, block: str | None = None) -> np.ndarray:
        """Σ (d, d), or its diagonal block for the array named `block`."""
        made = super().covariance if self._one is None else self._one.covariance
        return made(theta, samples, block)

    def gradient_moments(
        self, theta: Any, samples: Samples, transform: Callable[[np.ndarray], np.ndarray] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean (d,) and variance (d,) of the gradient of one sample, in another basis."""
        made = super().gradient_moments if self._one is None else self._one.gradient_moments
        return made(theta, samples, transform)

    def step_size(self, problem: Any) -> Watcher:
        """δ = 1/(1 + 10ηR), R the rate at which drift and noise change: short steps where the noise grows like θ³."""
        if self._one is not None:
            return self._one.step_size(problem)
        from sgdsde.models.diagonal_linear_charge import step_size
        from sgdsde.models.product_steps import SMALL

        samples = problem.samples
        X = samples.X
        S = X.T @ X / samples.n
        fourth = (X.T * np.square(X).sum(axis=1)) @ X / samples.n - S @ S
        numbers = [problem.effective_learning_rate / SMALL, problem.gamma, 2.0 * problem.noise_scale]
        p = np.array([*numbers, np.linalg.norm(S, 2), np.linalg.norm(fourth, 2), *samples.numbers])
        return Watcher(step_size, p, samples.data, 1, self.work(samples.n))

    # --- symmetry -----------------------------------------------------------------------------------------------------

    def symmetries(self) -> Named[Generator]:
        """Rescalings of neighbouring factors, each made when it is looked up.

        "W1/W2" is +1 on W1 and -1 on W2, with the charge ‖W1‖² - ‖W2‖². Unit by unit "W1/W2[j]", or "W1/W2[j,i]" with
        several products for each input. Sums of neighbours rescale factors that are not. Two factors of width h > 1
        have so(h, h) for each input j, "input0:mixing(i,k)", "input0:crossing(i,k)", …: see `Product.symmetries`.
        """
        units = [()] if self.n_inputs * self.width == 1 else [(), *np.ndindex(self.shapes["W1"])]
        makers: dict[str, Callable[[], Generator]] = {}
        for k in range(1, self.depth):
            for unit in units:
                name = f"W{k}/W{k + 1}" + (f"[{','.join(map(str, unit))}]" if unit else "")
                makers[name] = partial(self._rescaling, k, k + 1, unit, name)
        return Named(makers, self._mixtures())

    def _mixtures(self) -> Iterator[Family[Generator]]:
        """What mixes the products of one input."""
        if self.depth != 2:
            return
        for j in range(self.n_inputs):
            u = range(j * self.width, (j + 1) * self.width)
            w = range(u.start + self.dim // 2, u.stop + self.dim // 2)
            yield from product_pairs("" if self.n_inputs == 1 else f"input{j}:", self.dim, u, w)

    def rescaling(self, up: int = 1, down: int = 2, unit: Sequence[int] | int | None = None) -> Generator:
        """+1 on the factor number `up`, -1 on the factor number `down`, of all products or of one.

        Parameters
        ----------
        up, down : int
            In 1..D, not equal.
        unit : int or tuple of int, optional
            Place of the product in the arrays of `shapes`.

        Examples
        --------
        >>> DiagonalLinear(2, depth=3).rescaling(1, 3, 1)
        Generator('W1/W3[1]', dim=6, symmetric: [0:6] Diagonal(6))
        """
        up, down = (_check.count(name, k, most=self.depth) for name, k in (("up", up), ("down", down)))
        if up == down:
            raise ArgumentError(f"up and down must be two factors, got {up} twice")
        at = () if unit is None else tuple(np.atleast_1d(unit))
        shape = self.shapes["W1"]
        if at and len(at) != len(shape):
            raise ShapeError(f"unit must have {len(shape)} numbers for arrays of shape {shape}, got {unit!r}")
        at = tuple(_check.count("unit", int(k), least=0, most=n - 1) for k, n in zip(at, shape))
        name = f"W{up}/W{down}" + (f"[{','.join(map(str, at))}]" if at else "")
        return self._rescaling(up, down, at, name)

    def _rescaling(self, up: int, down: int, unit: tuple[int, ...], name: str) -> Generator:
        a = np.zeros((self.depth, *self.shapes["W1"]))
        a[(up - 1, *unit)], a[(down - 1, *unit)] = 1.0, -1.0
        return Generator.diagonal(a.ravel(), name=name)

    def charge_track(self, generator: Generator, gamma: float, X: Any, Y: Any) -> Watcher | None:
        """The charge law of a diagonal generator, in one pass over the samples; None for another."""
        if self._one is not None:
            return self._one.charge_track(generator, gamma, X, Y)
        diagonals = _diagonals([generator])
        if diagonals is None:
            return None
        from sgdsde.models.diagonal_linear_charge import charge_law

        samples = self.samples(X, Y)
        gamma = _check.number("gamma", gamma, least=0.0)
        p = np.concatenate([[gamma], samples.numbers, [generator.norm], *diagonals])
        return Watcher(charge_law, p, samples.data, CHARGE_ROWS, self.work(samples.n))

    def charge_traces(self, generators: Sequence[Generator], X: Any, Y: Any) -> Watcher | None:
        """Tr[ΣA] of diagonal generators, all in one pass over the samples."""
        diagonals = _diagonals(generators)
        if diagonals is None or self._one is not None:
            return None
        from sgdsde.models.diagonal_linear_charge import traces

        samples = self.samples(X, Y)
        p = np.concatenate([samples.numbers, *diagonals])
        return Watcher(traces, p, samples.data, len(diagonals), self.work(samples.n))


def _diagonals(generators: Sequence[Generator]) -> list[np.ndarray] | None:
    """The diagonals of generators that have nothing else."""
    found = []
    for one in generators:
        a = np.zeros(one.dim)
        for start, block in one.parts:
            if isinstance(block, Scattered):
                return None
            entries = block.vector if isinstance(block, Diagonal) else np.diagonal(block.matrix)
            if not isinstance(block, Diagonal) and not np.array_equal(np.diag(entries), block.matrix):
                return None
            a[start : start + block.size] = entries
        found.append(a)
    return found
