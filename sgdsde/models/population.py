"""Laws of one input and one output in place of samples: all that `Product` needs of its data are six moments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ModelError

__all__ = ["Population", "gaussian", "moments", "uw_gauss", "uw_label"]


@dataclass(frozen=True)
class Population:
    """Moments of a pair (x, y) of random numbers, given to `SGD` in place of X and Y.

    Its SDE needs the moments alone. Discrete SGD draws fresh samples at every step where there is a `sampler`, as those
    of `uw_gauss` and `uw_label` have one; a population without one has no samples to draw.

    Parameters
    ----------
    beta1, beta2 : float
        β₁ = E x², β₂ = E xy.
    alpha1, alpha2, alpha3 : float
        α₁ = Var x², α₂ = Cov(x², xy), α₃ = Var xy, so that the gradient of ℓ = (vx - y)² has the variance 4q(v),
        q(v) = α₁v² - 2α₂v + α₃. α₁α₃ >= α₂².
    y2 : float
        E y², for the loss. β₁·E y² >= β₂².
    sampler : tuple of four floats, optional
        (μ, a, k, s): x = μ + aξ, y = kx + sε, ξ and ε standard normal. The moments must be those of this law.
    """

    beta1: float
    beta2: float
    alpha1: float
    alpha2: float
    alpha3: float
    y2: float
    sampler: tuple[float, float, float, float] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name == "sampler":
                continue
            least = None if name in ("beta2", "alpha2") else 0.0
            object.__setattr__(self, name, _check.number(name, value, least=least))
        if self.alpha1 * self.alpha3 < self.alpha2 * self.alpha2 * (1 - 1e-12):
            raise ArgumentError(
                f"alpha2 must satisfy alpha2² <= alpha1·alpha3 (Cauchy-Schwarz), got {self.alpha2:g}² > "
                f"{self.alpha1:g}·{self.alpha3:g}"
            )

        if self.beta1 * self.y2 < self.beta2 * self.beta2 * (1 - 1e-12):
            raise ArgumentError(
                f"beta2 must satisfy beta2² <= beta1·y2 (Cauchy-Schwarz), got {self.beta2:g}² > "
                f"{self.beta1:g}·{self.y2:g}"
            )

        if self.sampler is not None:
            self._check_sampler()

    def _check_sampler(self) -> None:
        sampler = _check.array("sampler", self.sampler, (4,))
        object.__setattr__(self, "sampler", tuple(map(float, sampler)))
        law = gaussian(*sampler, sampled=False)
        for name, value in vars(law).items():
            own = getattr(self, name)
            if name != "sampler" and abs(own - value) > 1e-9 * (abs(own) + abs(value)):
                raise ArgumentError(f"{name} must be that of the sampler, {value:g}, got {own:g}")

    def draw(self, n_samples: int, rng: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """x and y, each (n_samples,), of the law that the sampler names; with one seed more never change those before.

        Parameters
        ----------
        n_samples : int
        rng : None, int, SeedSequence or Generator
            An int in [0, 2**64) is the key.

        Raises
        ------
        ModelError
            For a population without a sampler.

        Examples
        --------
        >>> x, y = uw_gauss(2.0, 0.0).draw(3, 0)
        >>> bool((y == 2.0 * x).all())
        True
        """
        from sgdsde.datasets.gaussian_teacher import DATA
        from sgdsde.random.stream import key_from, normals

        if self.sampler is None:
            raise ModelError(f"draw needs a sampler, and {self!r} has moments alone")
        n = _check.count("n_samples", n_samples)
        mean, spread, slope, noise = self.sampler
        xi, eps = normals(key_from(rng), 0, purpose=DATA, count=2 * n).reshape(n, 2).T
        x = mean + spread * xi
        return x, slope * x + noise * eps

    def q(self, v: float) -> float:
        """q(v) = α₁v² - 2α₂v + α₃, the variance of the gradient in v over 4·scale²."""
        return self.alpha1 * v * v - 2.0 * self.alpha2 * v + self.alpha3


def uw_label(target: float = 1.0, noise_std: float = 1.0) -> Population:
    """x = 1, y = target + noise_std·ε: the noise of the gradient in v does not depend on v.

    For L = ½(uw - y)² use `Product(scale=0.5)`.

    Examples
    --------
    >>> uw_label(2.0, 0.5).q(17.0)
    0.25
    """
    target, noise_std = _check.number("target", target), _check.number("noise_std", noise_std, least=0.0)
    return gaussian(1.0, 0.0, target, noise_std)


def uw_gauss(k: float = 1.0, s: float = 1.0) -> Population:
    """x ~ N(0, 1), y = kx + s·ε, ε ~ N(0, 1): α = (2, 2k, 2k² + s²), β = (1, k).

    The noise grows like v³ for large v, and plain Euler-Maruyama may explode where the SDE does not.

    Examples
    --------
    >>> uw_gauss(1.0, 0.5).q(1.0)
    0.25
    """
    k, s = _check.number("k", k), _check.number("s", s, least=0.0)
    return gaussian(0.0, 1.0, k, s)


def gaussian(mean: float, spread: float, slope: float, noise: float, *, sampled: bool = True) -> Population:
    """x = mean + spread·ξ, y = slope·x + noise·ε with ξ, ε ~ N(0, 1): its moments, and how to draw it.

    With w = spread², Var x² = 2w² + 4w·mean², and Var xy = slope²·Var x² + noise²·E x².
    """
    w = spread * spread
    beta1, alpha1 = mean * mean + w, 2.0 * w * w + 4.0 * w * mean * mean
    alpha3 = slope * slope * alpha1 + noise * noise * beta1
    y2 = slope * slope * beta1 + noise * noise
    sampler = (mean, spread, slope, noise) if sampled else None
    return Population(beta1, slope * beta1, alpha1, slope * alpha1, alpha3, y2, sampler)


def moments(x: np.ndarray, y: np.ndarray) -> Population:
    """The moments of samples (N,), with 1/N, as if they were the whole law."""
    xx, xy = x * x, x * y
    mean_xx, mean_xy = xx.mean(), xy.mean()
    a1, a2, a3 = np.mean((xx - mean_xx) ** 2), np.mean((xx - mean_xx) * (xy - mean_xy)), np.mean((xy - mean_xy) ** 2)
    a2 = np.clip(a2, -np.sqrt(a1 * a3), np.sqrt(a1 * a3))
    return Population(float(mean_xx), float(mean_xy), float(a1), float(a2), float(a3), float(np.mean(y * y)))
