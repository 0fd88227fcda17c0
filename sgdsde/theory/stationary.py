"""The stationary law of v = Σ_i Π_k u_i^(k) under the SDE of SGD, as a distribution.

L. Ziyin, H. Li, M. Ueda, "Law of Balance and Stationary Distribution of Stochastic Gradient Descent", arXiv:2308.06671,
Eqs. (12), (14), (15) and their table. For K factors (the paper's depth D is K - 1), width d, T = η/S, on v > 0,

    p ∝ v^{-3(K-1)/K} q^{-1} exp[-∫ (d^{1-2/K}(β₁v - β₂)v^{-m} + γ d^{2-4/K} v^{1-2m}) / (KTq) dv],   m = 2 - 2/K.

Where the printed formulas differ: (14) integrates from 0, where the integral diverges (any other point will do); (11)
misses a square; (107), the law for y = kx, has β₁γ where γ stands (tests tell them apart); and T_c is a matter of K = 2
alone: without weight decay the law exists for every T once K > 2, and with any weight decay it is a point mass at 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from sgdsde import _check
from sgdsde._abi import INITIAL
from sgdsde._errors import ArgumentError, ModelError
from sgdsde.equation import SDE
from sgdsde.models import Population, Product
from sgdsde.models.population import moments
from sgdsde.random import key_from, normals
from sgdsde.theory._charts import Line
from sgdsde.theory._density import Density
from sgdsde.theory._table import Table
from sgdsde.theory.reduced import Coefficients, reduced_sde

__all__ = ["StationaryLaw"]


class StationaryLaw(Density):
    """The law that v = Σ_i Π_k u_i^(k), balanced, has in the long run under the SDE of SGD.

    Parameters
    ----------
    population : Population
        Moments of one input and one output, ℓ = scale·(vx - y)².
    T : float
        η/S, which is twice `problem.noise_scale`.
    depth : int
        K, the number of factors, as in `Product`: 2 is the model uw, 1 is linear regression.
    width : int
        d, the number of chains.
    gamma : float
        Weight decay γ.
    branch : {1, -1}, optional
        Sign of v, which v keeps for K > 1; that of E xy by default. Not for K = 1, where v runs over R.
    calculus : {'ito', 'stratonovich'}
        How the noise of the whole network is read; the SDE of SGD is Itô's.
    scale : float
        Multiplies the loss, as in `Product`.

    Attributes
    ----------
    normalisable : bool
        Whether there is a density, by the signs of exponents. If not, v ends in one of `atoms`.
    atoms : tuple of float
        Where v ends if it has no density: 0, or k where y = kx. Both are possible where there are two.
    support : tuple of float
        Range of the density.

    Notes
    -----
    Balanced chains are what the law of balance leads to. For K > 2 they become equal too; for K = 2 their shares of v
    are kept, whatever they are, and any width has the law of width 1. The normalisation, `cdf`, `ppf` and moments are
    integrals by adaptive Gauss-Legendre panels in a coordinate in which powers become exponentials, good to about
    1e-12, also close to T_c, where most of the probability may lie below 1e-100.

    Examples
    --------
    >>> from sgdsde.models import uw_gauss
    >>> from sgdsde.theory import StationaryLaw
    >>> law = StationaryLaw(uw_gauss(1.0, 1.0), T=0.2)
    >>> law.normalisable, round(law.mean(), 3), round(law.var(), 3), law.moment(3)
    (True, 0.581, 0.372, inf)
    >>> StationaryLaw(uw_gauss(1.0, 1.0), T=0.4)  # above T_c = 1/3
    StationaryLaw(T=0.4, depth=2, width=1, gamma=0): v → 0
    """

    def __init__(
        self,
        population: Population,
        T: float,
        depth: int = 2,
        width: int = 1,
        gamma: float = 0.0,
        *,
        branch: int | None = None,
        calculus: str = "ito",
        scale: float = 1.0,
    ) -> None:
        numbers = Coefficients.of(population, T, depth, width, gamma, calculus, scale)
        self._words = f"T={float(T):g}, depth={depth}, width={width}, gamma={float(gamma):g}"
        equation = {"population": population, "T": T, "depth": depth, "width": width, "gamma": gamma}
        self._equation: dict[str, Any] | None = {**equation, "calculus": calculus, "scale": scale}
        self._made: Table | None = None
        self._branch = branch
        self._limit: tuple[Any, ...] = ()
        super().__init__(numbers, branch)

    @classmethod
    def deep(
        cls, population: Population, noise: float, gamma: float = 0.0, *, branch: int | None = None
    ) -> StationaryLaw:
        """The limit K → ∞ of many factors, which depends on noise = KT/d and γd alone (the table of the paper).

        Parameters
        ----------
        population : Population
        noise : float
            KT/d.
        gamma : float
            γd.
        branch : {1, -1}, optional
        """
        law = cls.__new__(cls)
        law._words = f"KT/d={float(noise):g}, depth=inf, gamma·d={float(gamma):g}"
        law._equation, law._made = None, None
        law._limit = (population, noise, gamma, branch)
        Density.__init__(law, Coefficients.deep(population, noise, gamma), branch)
        return law

    @classmethod
    def of(cls, problem: Any, branch: int | None = None) -> StationaryLaw:
        """The law of an `SGD` problem on `Product`: its data's moments, its η, S, γ and scale.

        Without replacement T is ρη/S.
        """
        model = getattr(problem, "model", None)
        if not isinstance(model, Product):
            raise ArgumentError(f"problem must be an SGD on Product, got {_check.show(problem)}")
        X, Y = problem.samples.X, problem.samples.Y
        law = X if isinstance(X, Population) else moments(np.ravel(X), np.ravel(Y))
        T = 2.0 * problem.noise_scale
        return cls(law, T, model.depth, model.width, problem.gamma, branch=branch, scale=model.scale)

    def __repr__(self) -> str:
        if self.normalisable:
            return f"StationaryLaw({self._words}): v in ({self.support[0]:g}, {self.support[1]:g})"
        return f"StationaryLaw({self._words}): v → {' or '.join(f'{a:g}' for a in self.atoms)}"

    def __reduce__(self) -> Any:
        if self._equation is None:
            return _deep, self._limit
        return _rebuild, ({**self._equation, "branch": self._branch},)

    def sde(self) -> SDE:
        """The reduced equation: `reduced_sde` with the same arguments."""
        if self._equation is None:
            raise ModelError("the limit of many factors has no equation in the time of SGD; take a finite depth")
        return reduced_sde(**self._equation)

    # --- the distribution ---------------------------------------------------------------------------------------------

    @property
    def _table(self) -> Table:
        if not self.normalisable:
            raise ModelError(f"{self!r} has no density: its mass ends in a point")
        if self._made is None:
            self._made = Table(self._log, self._centres())
        return self._made

    def logpdf(self, v: Any) -> np.ndarray:
        """ln p(v), any shape; -inf outside the support."""
        return self.log_density(v) - self._table.log_total

    def pdf(self, v: Any) -> np.ndarray:
        """p(v), any shape. ModelError where there is no density."""
        return np.exp(self.logpdf(v))

    def cdf(self, v: Any) -> np.ndarray:
        """P(V <= v), any shape."""
        return self._probability(v, self._sign > 0)

    def sf(self, v: Any) -> np.ndarray:
        """P(V > v), any shape, without the cancellation of 1 - cdf."""
        return self._probability(v, self._sign < 0)

    def _probability(self, v: Any, below: bool) -> np.ndarray:
        if not self.normalisable:
            step = _check.array("v", v, finite=False) >= self._atom()
            return np.where(step == (below == (self._sign > 0)), 1.0, 0.0)
        v, inside, z = self._inside(v)
        beyond = self._sign * v >= self._chart.ends[1]
        out = np.where(np.isnan(v), np.nan, np.where(beyond == below, 1.0, 0.0))
        out[inside] = self._table.cdf(z) if below else self._table.sf(z)
        return out

    def ppf(self, u: Any) -> np.ndarray:
        """v with P(V <= v) = u, any shape, 0 <= u <= 1."""
        u = _check.array("u", u)
        if np.any((u < 0) | (u > 1)):
            raise ArgumentError(f"u must lie in [0, 1], got {u.min():g} to {u.max():g}")
        if not self.normalisable:
            return np.full_like(u, self._atom())
        share, rest = (u, 1.0 - u) if self._sign > 0 else (1.0 - u, u)
        inner = (u > 0) & (u < 1)
        out = np.where(share > 0, self._chart.ends[1], self._chart.ends[0])
        out[inner] = self._chart.point(self._table.ppf(share[inner], rest[inner])).x
        return self._sign * out

    def sample(self, n: int, rng: Any = None) -> np.ndarray:
        """n independent values, (n,).

        Value i depends on the seed and i alone (it is `ppf` of a uniform number with the address i), so a longer sample
        begins with the shorter one. Costs some microseconds each.
        """
        n = _check.count("n", n, least=0)
        return self.ppf(ndtr(normals(key_from(rng), 0, purpose=INITIAL, count=n)))

    # --- numbers ------------------------------------------------------------------------------------------------------

    def _atom(self) -> float:
        if len(self.atoms) != 1:
            raise ModelError(f"{self!r}: where v ends depends on the path")
        return self.atoms[0]

    def moment(self, j: int) -> float:
        """E v^j; inf (or NaN, for odd j on R) where it is infinite, which exponents decide."""
        j = _check.count("j", j, least=0, most=1000)
        if not self.normalisable:
            return self._atom() ** j
        line = isinstance(self._chart, Line)
        if not self._finite(j):
            return np.nan if line and j % 2 else float(self._sign**j) * np.inf

        def log_moment(z: np.ndarray) -> np.ndarray:
            return self._log(z) + j * np.log(np.abs(self._chart.point(z).x))

        if j == 0:
            return 1.0
        table = Table(log_moment, self._centres())
        size = float(np.exp(table.log_total - self._table.log_total))
        if self._chart.ends[0] < 0:
            size *= table.mean(lambda z: np.sign(self._chart.point(z).x) ** j)
        return float(self._sign**j) * size

    def mean(self) -> float:
        """E v."""
        return self.moment(1)

    def var(self) -> float:
        """Variance; inf where E v² is."""
        second = self.moment(2)
        if not np.isfinite(second):
            return second
        mean = self.moment(1)
        return max(second - mean * mean, 0.0) if not self.normalisable else self.expect(lambda v: (v - mean) ** 2)

    def std(self) -> float:
        """√Var."""
        return float(np.sqrt(self.var()))

    def expect(self, f: Callable[[np.ndarray], np.ndarray]) -> float:
        """E f(v) for a vectorised f that grows too slowly for its tail to count beyond probability 1e-40."""
        if not self.normalisable:
            return float(f(np.array([self._atom()]))[0])
        return self._table.mean(lambda z: f(self._sign * self._chart.point(z).x))

    def critical_points(self) -> np.ndarray:
        """Every v inside the support with p'(v) = 0, in order: maxima and minima in turn."""
        z = np.unique(
            np.concatenate([self._table.edges, np.linspace(self._table.edges[0], self._table.edges[-1], 2000)])
        )
        x = self._chart.point(z).x
        with np.errstate(all="ignore"):
            g = self.slope(self._sign * x)
        turns = np.flatnonzero(np.isfinite(g[:-1]) & np.isfinite(g[1:]) & (np.sign(g[:-1]) * np.sign(g[1:]) < 0))
        turns = turns[x[turns + 1] > x[turns]]
        found = [brentq(lambda x: float(self.slope(self._sign * x)), x[i], x[i + 1], xtol=1e-300) for i in turns]
        return np.sort(self._sign * np.array(found))

    def mode(self) -> float:
        """Where the density is largest: 0 where it is infinite there."""
        if not self.normalisable:
            return self._atom()
        if self.origin_exponent < 0:
            return 0.0
        points = self.critical_points()
        return float(points[np.argmax(self.logpdf(points))])


def _rebuild(arguments: dict[str, Any]) -> StationaryLaw:
    return StationaryLaw(**arguments)


def _deep(population: Population, noise: float, gamma: float, branch: int | None) -> StationaryLaw:
    return StationaryLaw.deep(population, noise, gamma, branch=branch)
