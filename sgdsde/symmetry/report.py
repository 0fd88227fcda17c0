"""ChargeReport: what a charge did along a run, beside its law, with errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sgdsde import _check

__all__ = ["ChargeReport"]

_PATHWISE = (
    "delta", "noise", "gradient", "decay", "predicted", "remainder", "continuous", "gap", "quadratic", "cross",
    "abs_cross", "rounding", "defect",
)  # fmt: skip


@dataclass(frozen=True, repr=False, eq=False)
class ChargeReport:
    """Parts of the change of a charge since the start; arrays are (n_paths, n_times) unless said otherwise."""

    name: str
    dynamics: str
    """'sgd', 'euler-maruyama' or 'milstein-symmetric'."""
    t: np.ndarray
    """(n_times,)"""
    dt: float
    delta: np.ndarray
    """C(t) - C(0), measured."""
    noise: np.ndarray
    """Σ 2σ²ρh Tr[ΣA]."""
    gradient: np.ndarray
    """Σ h²∇LᵀA∇L."""
    decay: np.ndarray
    """Σ (-4γh + 4γ²h²) C."""
    continuous: np.ndarray
    """∫(-4γC + 2σ²ρTr[ΣA])dt along the path: the law of the SDE, without the O(h) terms."""
    quadratic: np.ndarray
    """Σ vᵀAv, v the step without decay."""
    cross: np.ndarray
    """Σ 2(1-2γh)θᵀAv: zero for SGD and Euler-Maruyama by symmetry (`milstein-symmetric` has a term there by design)."""
    abs_cross: np.ndarray
    """Σ|2(1-2γh)θᵀAv|."""
    rounding: np.ndarray
    """eps Σ‖A‖‖θ‖(‖θ‖ + ‖v‖), the size of which rounding in `cross` may be."""
    remainder_size: np.ndarray | None
    """(n_times,) predicted standard deviation of `remainder` of one path; NaN where no formula is known."""

    @property
    def predicted(self) -> np.ndarray:
        """noise + gradient + decay: the sum of exact one-step means along the path."""
        return self.noise + self.gradient + self.decay

    @property
    def remainder(self) -> np.ndarray:
        """delta - predicted: a martingale for SGD and Euler-Maruyama, of mean zero."""
        return self.delta - self.predicted

    @property
    def gap(self) -> np.ndarray:
        """delta - continuous: what the law of the SDE leaves open at this step size; its mean is O(h)."""
        return self.delta - self.continuous

    @property
    def defect(self) -> np.ndarray:
        """delta - (decay + quadratic + cross): zero to rounding for any step whatever (with `track_every=1`)."""
        return self.delta - self.decay - self.quadratic - self.cross

    def _values(self, what: str, skip_diverged: bool) -> tuple[np.ndarray, np.ndarray]:
        values = getattr(self, _check.choice("what", what, _PATHWISE))
        alive = np.isfinite(values)
        if not _check.flag("skip_diverged", skip_diverged):
            alive = alive | ~alive.all(axis=0)
        return values, alive

    def mean(self, what: str, *, skip_diverged: bool = False) -> np.ndarray:
        """Mean over paths, (n_times,), of one of the arrays by name; NaN once a path is missing, unless skipped."""
        values, alive = self._values(what, skip_diverged)
        return np.where(alive, values, 0.0).sum(axis=0) / np.maximum(alive.sum(axis=0), 1)

    def stderr(self, what: str, *, skip_diverged: bool = False) -> np.ndarray:
        """Standard error of `mean`, (n_times,); NaN with one path."""
        values, alive = self._values(what, skip_diverged)
        count = alive.sum(axis=0)
        if count.min() < 2:
            return np.full(self.t.shape, np.nan)
        spread = np.where(alive, values - self.mean(what, skip_diverged=skip_diverged), 0.0)
        return np.sqrt((spread**2).sum(axis=0) / (count - 1) / count)

    def z(self, *, skip_diverged: bool = False) -> np.ndarray:
        """Sum of the remainder over paths, over √Σ(its increments)², (n_times,); NaN before anything moved.

        About standard normal where the law holds and paths are many. With few paths it is safer than mean / stderr:
        the remainder is a martingale, so its increments between saved times are uncorrelated, and where they are
        symmetric P(|z| > x) <= 2exp(-x²/2) for any number of them. For `milstein-symmetric` the remainder has an O(h)
        bias of its own.
        """
        values = self.remainder
        if _check.flag("skip_diverged", skip_diverged):
            values = values[np.isfinite(values).all(axis=1)]
        squares = np.cumsum(np.sum(np.diff(values, axis=1, prepend=0.0) ** 2, axis=0))
        return np.divide(values.sum(axis=0), np.sqrt(squares), out=np.full(squares.shape, np.nan), where=squares > 0)

    def table(self, time: int = -1, *, skip_diverged: bool = False) -> list[tuple[str, float, float]]:
        """(part, mean, standard error) at one of the times, by index."""
        time = _check.count("time", time, least=-self.t.size, most=self.t.size - 1)
        parts = ("delta", "predicted", "noise", "gradient", "decay", "remainder", "continuous", "gap")
        return [
            (what, float(self.mean(what, skip_diverged=skip_diverged)[time]),
             float(self.stderr(what, skip_diverged=skip_diverged)[time]))
            for what in parts
        ]  # fmt: skip

    def __repr__(self) -> str:
        words = {
            "delta": "ΔC measured", "predicted": "ΔC predicted", "noise": "  noise term", "gradient": "  gradient term",
            "decay": "  decay", "remainder": "remainder", "continuous": "continuous law", "gap": "  its gap",
        }  # fmt: skip
        n = self.delta.shape[0]
        lines = [f"Charge law of {self.name} along {self.dynamics}, dt = {self.dt:g}, t = {self.t[-1]:g}, {n} paths"]
        lines += [f"  {words[what]:<16} {mean: .6e} ± {error:.1e}" for what, mean, error in self.table()]
        if self.remainder_size is not None and n > 1:
            spread = self.stderr("remainder")[-1] * np.sqrt(n)
            lines.append(f"  remainder of one path: std {spread:.2e}, predicted about {self.remainder_size[-1]:.1e}")
        if self.dynamics != "milstein-symmetric":
            cross, rounding = self.mean("abs_cross")[-1], self.mean("rounding")[-1]
            lines.append(f"  pathwise: Σ|cross| = {cross:.1e}, rounding allows {rounding:.1e}")
        return "\n".join(lines)
