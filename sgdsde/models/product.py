"""Product: f(x) = Σ_i Π_k u_i^(k) · x, one input and one output (a diagonal linear network), with squared loss."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ModelError
from sgdsde.algebra import Generator
from sgdsde.models.charge_rows import CHARGE_ROWS
from sgdsde.models.linear_symmetry import product_pairs
from sgdsde.models.model import Compiled, Model, Samples
from sgdsde.models.naming import Named
from sgdsde.models.packing import pack
from sgdsde.models.population import Population, moments
from sgdsde.run.watching import Watcher

__all__ = ["Product"]


class Product(Model):
    """`width` chains of `depth` factors side by side: v = Σ_i Π_k u_i^(k), ℓ = scale·(v x - y)².

    Parameters
    ----------
    width : int
        Number of units i.
    depth : int
        Number of factors of each; 2 with width 1 is the model called uw.
    scale : float
        Multiplies the loss; `scale=0.5` gives ½(vx - y)².

    Notes
    -----
    θ = [W1, …, W_depth], W_k = (u_i^(k))_i of shape (width,). Data are X of shape (N,) or (N, 1) and Y likewise, or a
    `Population`. All gradients are along ∇v, so Σ = 4·scale²·q(v)·∇v∇vᵀ with q from three moments. The
    default factor "rank-one" is G = 2·scale·√q·∇v with one noise: a step costs nothing per sample. "per-sample" has N.

    Examples
    --------
    >>> from sgdsde.models import uw_gauss
    >>> uw = Product()
    >>> uw.dim, uw.shapes
    (2, {'W1': (1,), 'W2': (1,)})
    >>> uw.factor([1.0, 2.0], uw.samples(uw_gauss(1.0, 1.0), None)).ravel()
    array([6.92820323, 3.46410162])
    """

    factors = ("rank-one", "per-sample")

    def __init__(self, width: int = 1, depth: int = 2, scale: float = 1.0) -> None:
        self.width = _check.count("width", width)
        self.depth = _check.count("depth", depth)
        self.scale = _check.positive("scale", scale)
        self.dim = self.width * self.depth
        self.shapes = {f"W{k}": (self.width,) for k in range(1, self.depth + 1)}

    def __repr__(self) -> str:
        scale = "" if self.scale == 1.0 else f", scale={self.scale:g}"
        return f"Product(width={self.width}, depth={self.depth}{scale})"

    def fan_in(self, name: str) -> int:
        """1 but for the last factor, whose products are summed over the width: v is then O(1) for any width."""
        return self.width if name == f"W{self.depth}" else 1

    # --- kernels and their arrays -------------------------------------------------------------------------------------

    def samples(self, X: Any, Y: Any) -> Samples:
        """X (N,) or (N, 1) and Y likewise, or a `Population` for X and None for Y."""
        if isinstance(X, Population):
            if Y is not None:
                raise ModelError(f"Y must be None when X is a Population, got {_check.show(Y)}")
            law, n, data = X, 0, np.empty(0)
        else:
            if Y is None:
                raise ModelError(f"{self!r} needs samples X and Y, or a Population, got X alone ({_check.show(X)})")
            X, Y, data = pack(X, Y, 1, 1)
            n = X.shape[0]
            law = moments(X.ravel(), Y.ravel())
        law_numbers = [law.beta1, law.beta2, law.alpha1, law.alpha2, law.alpha3, law.y2]
        return Samples(X, Y, n, np.array([n, self.scale, self.width, self.depth, *law_numbers], dtype=np.float64), data)

    def compiled(self, factor: str | None = None) -> Compiled:
        """The kernels; `factor` chooses the increment."""
        from sgdsde.models import product_kernels as k
        from sgdsde.models import product_second as s

        increment = k.increment if factor == "per-sample" else k.rank_one
        second = (s.hessian, s.hessian_traces, s.gradient_norms)
        return Compiled(k.weighted, k.sample, k.losses, increment, k.correction, k.step, *second)

    def noise(self, factor: str, samples: Samples) -> tuple[int, str]:
        """One noise for "rank-one", N for "per-sample"."""
        if factor == "rank-one":
            return 1, "scalar"
        self._needs_samples(samples, "the per-sample factor and discrete SGD")
        return super().noise(factor, samples)

    def work(self, n: int) -> tuple[int, int]:
        """Weights of n samples, and a few rows for each path."""
        return n, self.dim + 2

    # --- gradients ----------------------------------------------------------------------------------------------------

    def value(self, theta: Any) -> Any:
        """v = Σ_i Π_k u_i^(k), shape (...) for θ of shape (..., d)."""
        theta = self.check_theta(theta)
        return theta.reshape(*theta.shape[:-1], self.depth, self.width).prod(axis=-2).sum(axis=-1)

    def slope(self, theta: Any) -> np.ndarray:
        """∇v, shape (..., d)."""
        theta = self.check_theta(theta)
        u = theta.reshape(*theta.shape[:-1], self.depth, self.width)
        others = [np.delete(u, k, axis=-2).prod(axis=-2) for k in range(self.depth)]
        return np.stack(others, axis=-2).reshape(theta.shape)

    def loss(self, theta: Any, samples: Samples) -> Any:
        """L(θ), from the moments: scale·(β₁v² - 2β₂v + E y²) for a population."""
        if samples.n:
            return super().loss(theta, samples)
        v, law = self.value(theta), samples.X
        return self.scale * (law.beta1 * v * v - 2.0 * law.beta2 * v + law.y2)

    def gradient(self, theta: Any, samples: Samples) -> np.ndarray:
        """∇L(θ) = 2·scale·(β₁v - β₂)∇v, shape (..., d)."""
        beta1, beta2 = samples.numbers[4:6]
        return (2.0 * self.scale * (beta1 * self.value(theta) - beta2))[..., None] * self.slope(theta)

    def factor(self, theta: Any, samples: Samples, name: str | None = None) -> np.ndarray:
        """G with GGᵀ = Σ: (d, 1) for "rank-one", (d, N) for "per-sample"."""
        name = _check.choice("factor", self.factors[0] if name is None else name, self.factors)
        if name == "per-sample":
            return super().factor(theta, samples, name)
        theta = self.check_theta(theta, one=True)
        alpha1, alpha2, alpha3 = samples.numbers[6:9]
        v = float(self.value(theta))
        spread = np.sqrt(max(0.0, (alpha1 * v - 2.0 * alpha2) * v + alpha3))
        return (2.0 * self.scale * spread * self.slope(theta))[:, None]

    def hessian_vector(self, theta: Any, v: Any, samples: Samples, c: Any = None) -> np.ndarray:
        """Σ_i c_i ∇²ℓ_i(θ) v, shape (d,); ∇²L v without c, which is how it has to be for a population."""
        if not samples.n and c is not None:
            raise ModelError("c must be None for a law of the data, which has no samples to weight")
        return super().hessian_vector(theta, v, self._standing_in(samples), c)

    def hessian_trace(self, theta: Any, samples: Samples) -> float:
        """Tr ∇²L(θ), also of a population."""
        return super().hessian_trace(theta, self._standing_in(samples))

    def _standing_in(self, samples: Samples) -> Samples:
        """Of a population one sample with its E x² and E xy: L depends on θ through these alone."""
        if samples.n:
            return samples
        law = samples.X
        root = np.sqrt(law.beta1)
        return self.samples(np.array([root]), np.array([law.beta2 / root if root > 0 else 0.0]))

    def covariance(self, theta: Any, samples: Samples, block: str | None = None) -> np.ndarray:
        """Σ = 4·scale²·q(v)·∇v∇vᵀ, or its diagonal block for the array named `block`."""
        g = self.factor(theta, samples)[:, 0]
        if block is not None:
            g = g[self.places()[_check.choice("block", block, self.shapes)]]
        return np.outer(g, g)

    def gradient_moments(
        self, theta: Any, samples: Samples, transform: Callable[[np.ndarray], np.ndarray] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean (d,) and variance (d,) of the gradient of one sample, in another basis."""
        turn = self._turn(transform)
        mean = self.gradient(self.check_theta(theta, one=True), samples)
        return turn(mean[None])[0], turn(self.factor(theta, samples).T)[0] ** 2

    def step_size(self, problem: Any) -> Watcher:
        """δ = 1/(1 + 10ηR), R the rate at which drift and noise change (`product_steps`): short steps for large θ."""
        from sgdsde.models.product_steps import ROWS, SMALL, step_size

        numbers = [problem.effective_learning_rate / SMALL, problem.gamma, 2.0 * problem.noise_scale]
        p = [*numbers, *problem.samples.numbers]
        return Watcher(step_size, np.array(p), np.empty(0), 1, (0, ROWS))

    # --- symmetry -----------------------------------------------------------------------------------------------------

    def symmetries(self) -> Named[Generator]:
        """Rescalings of neighbouring factors: "W1/W2" is +1 on W1, -1 on W2 and has the charge ‖W1‖² - ‖W2‖².

        For width > 1 also unit by unit: "W1/W2[0]", "W1/W2[1]", … Two factors of width h have all of so(h, h):
        "mixing(i,j)" and "crossing(i,j)" with the charges 2(u_iu_j - w_iw_j) and 2(u_iw_j - u_jw_i), u = W1, w = W2;
        "rotation(i,j)" and "twist(i,j)" are antisymmetric and have none.
        """
        own: dict[str, Callable[[], Generator]] = {}
        for k in range(1, self.depth):
            name = f"W{k}/W{k + 1}"
            units = [(name, np.ones(self.width))]
            if self.width > 1:
                units += [(f"{name}[{i}]", unit) for i, unit in enumerate(np.eye(self.width))]
            for key, unit in units:
                a = np.zeros((self.depth, self.width))
                a[k - 1], a[k] = unit, -unit
                own[key] = partial(Generator.diagonal, a.ravel(), name=key)
        u, w = range(self.width), range(self.width, 2 * self.width)
        return Named(own, product_pairs("", self.dim, u, w) if self.depth == 2 else ())

    def charge_track(self, generator: Generator, gamma: float, X: Any, Y: Any) -> Watcher | None:
        """The charge law of a diagonal generator, in closed form; None for another."""
        matrix = generator.matrix
        diagonal = np.diagonal(matrix)
        if not np.array_equal(np.diag(diagonal), matrix):
            return None
        from sgdsde.models.product_charge import charge_law

        samples = self.samples(X, Y)
        gamma = _check.number("gamma", gamma, least=0.0)
        p = np.concatenate([[gamma], samples.numbers, [generator.norm], diagonal])
        return Watcher(charge_law, p, samples.data, CHARGE_ROWS, (0, self.dim + 2))
