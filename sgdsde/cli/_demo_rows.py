"""The lines of the demo's table: what was measured, what was predicted, and the error of the difference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from sgdsde.cli._demo_runs import EM, EM_FINE, SGD_RUN, Results
from sgdsde.comparison import compare

__all__ = ["Row", "Section", "sections", "shown"]

MET = 0.1
"""Two sides have met when this part of their distance is left."""
END = 0.75
"""The equilibrium is looked at after this share of the way there."""


class Row(NamedTuple):
    """One line: `error` is the standard error of measured - predicted; for `exact` lines what rounding may do."""

    label: str
    measured: float
    predicted: float
    error: float
    exact: bool = False

    @property
    def z(self) -> float:
        """(measured - predicted)/error; NaN for lines that are exact."""
        return np.nan if self.exact or not self.error > 0 else (self.measured - self.predicted) / self.error


class Section(NamedTuple):
    """Lines that mean the same thing, a sentence on what that is, and further numbers with a sentence on theirs."""

    title: str
    rows: list[Row]
    meaning: str
    columns: tuple[tuple[str, ...], ...] = ()
    """A head and lines of cells."""
    about_columns: str = ""


def sections(results: Results) -> list[Section]:
    """All of the table."""
    return [_law(results), _gap(results), _pathwise(results), _balance(results), _both(results), _parts(results)]


def _law(results: Results) -> Section:
    rows: list[Row] = []
    split: list[tuple[str, ...]] = [("predicted, in its parts", "noise", "gradient", "decay", "scheme's own")]
    for label, solution in results.runs.items():
        r = results.law.report(solution)
        rows.append(_row(label, r.delta[:, -1], r.predicted[:, -1]))
        scheme = "none" if np.ndim(r.scheme) == 0 else _pm(r.scheme[:, -1])
        split.append((label, *(_pm(part[:, -1]) for part in (r.noise, r.gradient, r.decay)), scheme))
    return Section(
        f"1. The charge follows its law: change of C up to t = {_t_end(results):g}",
        rows,
        "Each line: how far C moved, against the sum of the exact mean changes of C in the steps of that dynamics.",
        tuple(split),
        "noise is Σ2σ²ρhTr[ΣA], gradient Σh²∇LᵀA∇L, decay Σ(-4γh + 4γ²h²)C, and Milstein's second derivative adds a "
        "little of its own, found by trying single steps.",
    )


def _gap(results: Results) -> Section:
    columns: list[tuple[str, ...]] = [("", "change of C", "continuous law", "gap", "gap, predicted", "gap / change")]
    gaps, expected = {}, {}
    for label, solution in results.runs.items():
        r = results.law.report(solution)
        gap, predicted, change = r.gap[:, -1], (r.predicted - r.continuous)[:, -1], r.delta[:, -1]
        gaps[label], expected[label] = _mean_error(gap), _mean_error(predicted)
        share = f"{gap.mean() / change.mean():.1%}" if change.mean() else "-"
        columns.append((label, *map(_pm, (change, r.continuous[:, -1], gap, predicted)), share))
    ratio, error = _ratio(gaps[EM], gaps[EM_FINE])
    wanted, wanted_error = _ratio(expected[EM], expected[EM_FINE])
    return Section(
        "2. The continuous law ∫(-4γC + 2σ²ρTr[ΣA])dt leaves a gap, and the gap shrinks with dt",
        [Row("gap at dt = η over gap at dt = η/4", ratio, wanted, float(np.hypot(error, wanted_error)))],
        "The line: how many times smaller the gap is when steps are four times smaller, against what its terms give.",
        tuple(columns),
        "gap is the change of C less the continuous law along the same paths; predicted are the terms of order dt, "
        "Σ(h²∇LᵀA∇L + 4γ²h²C).",
    )


def _pathwise(results: Results) -> Section:
    r = results.law.report(results.runs[SGD_RUN])
    left = np.abs(r.delta - r.decay - r.quadratic).max()
    return Section(
        "3. For SGD the law is exact on every path: C' = (1 - 2ηγ)²C + η²ĝᵀAĝ for every batch",
        [Row("largest deviation", float(left), 0.0, float(r.rounding.max()), exact=True)],
        "The line: the most that is left of this identity, summed along a path, of all paths and times; the third "
        "number is how much rounding may leave.",
    )


def _balance(results: Results) -> Section:
    rows: list[Row] = []
    columns: list[tuple[str, ...]] = [
        ("at the end", "2γC", "σ²ρTr[ΣA]", "its O(η) terms", "2γC / σ²ρTr[ΣA]", "C, start to end")
    ]
    gamma, end = results.settings.gamma, results.settings.steps * results.settings.learning_rate
    ends: dict[tuple[str, str], tuple[float, float]] = {}
    for label, solution in results.sides.items():
        r = results.law.report(solution)
        first = int(np.searchsorted(r.t, END * r.t[-1] * (1 - 1e-9)))
        span = r.t[-1] - r.t[first]
        noise, gradient, drift, decay = (
            (part[:, -1] - part[:, first]) / (2 * span) for part in (r.noise, r.gradient, r.delta, r.decay)
        )
        twice = -decay / (1 - gamma * r.dt)  # 2γ<C>: decay is Σ(-4γh + 4γ²h²)C
        small = gradient + gamma * r.dt * twice
        rows.append(_row(label, twice, noise + small - drift))
        charges = results.law.charge(solution.y)
        ratio = _plus_minus(*_paired_ratio(twice, noise))
        moved = f"{charges[0, 0]:.3g} to {_pm(charges[:, -1], 1)}"
        columns.append((label, _pm(twice), _pm(noise), _pm(small), ratio, moved))
        ends[label.split()[0], label.split()[-1]] = charges[:, 0].mean(), charges[:, -1].mean()
    left = max(_left(ends[word, "above"], ends[word, "below"]) for word, _ in ends)
    if left <= MET:
        head, met = "run into one noise equilibrium", "the ratio is 1 up to terms of order η."
    else:
        head = "run towards one noise equilibrium"
        met = f"they are still {left:.0%} as far apart as at the start, so the ratio is not yet 1: take more --steps."
    return Section(
        f"4. Two starts on one orbit {head}, 2γC = σ²ρTr[ΣA]: means over t = {END * end:g} to {end:g}",
        rows,
        "Each line: the decay 2γC, against the noise σ²ρTr[ΣA] with its terms of order η (and what C still moves).",
        tuple(columns),
        f"the starts e^(λA)θ, λ = ±{results.lam:g}, have different C and one loss, "
        f"{results.problem.loss(results.theta):.4g}; {met}",
    )


def _left(above: tuple[float, float], below: tuple[float, float]) -> float:
    """How far apart the charges of two runs are at the end, as a part of their distance at the start."""
    return abs(above[1] - below[1]) / max(abs(above[0] - below[0]), np.finfo(float).tiny)


def _both(results: Results) -> Section:
    rows: list[Row] = []
    columns: list[tuple[str, ...]] = [("", "effect size", "KS distance", "p")]
    a, b = (_at_end(results.runs[label]) for label in (SGD_RUN, EM))
    for word, function in (("charge", results.law.charge), ("loss", results.problem.loss)):
        found = compare(a, b, function)
        rows.append(Row(f"{word}: SGD, SDE", found.mean_a[-1], found.mean_b[-1], found.stderr[-1]))
        columns.append(
            (word, *(shown(round(float(x[-1]), 2), 0.0) for x in (found.effect_size, found.ks, found.p_value)))
        )
    for word in ("along", "across"):
        ends = [_reached(results.parts[label], word) for label in (SGD_RUN, EM)]
        (mean_a, error_a), (mean_b, error_b) = map(_mean_error, ends)
        rows.append(Row(f"distance {word}: SGD, SDE", mean_a, mean_b, float(np.hypot(error_a, error_b))))
    return Section(
        f"5. SGD and its SDE (dt = η) agree at t = {_t_end(results):g}",
        rows,
        "Each line: the mean over paths of SGD, against that of the SDE, which may differ by O(η): the charge, the "
        "loss, and how far the state has moved along and across the symmetry directions.",
        tuple(columns),
        "effect size is the difference in standard deviations of a path, KS the largest distance of the two "
        "distribution functions.",
    )


def _parts(results: Results) -> Section:
    columns = [("share of Σ|Δθ|² that is along", "")]
    left = size = 0.0
    for label, parts in results.parts.items():
        states = results.runs[label].y[:, results.at]
        charge = results.law.charge(states)
        change = next(iter(parts.charge_changes.values())).sum(axis=1)
        left = max(left, float(np.abs(change - (charge[:, -1] - charge[:, 0])).max()))
        size = max(size, float(np.einsum("ptd,ptd->pt", states, states).max()) * parts.parallel.shape[1])
        columns.append((label, _pm(np.asarray(parts.fraction))))
    return Section(
        "6. Motion along the symmetry directions (W1, W2) -> (-B W1, W2 B), all B, carries all change of the charge",
        [Row("2ΣAθ·Δθ along, less change of C", left, 0.0, float(np.finfo(float).eps) * size, exact=True)],
        "The line: the largest difference between the change of C and its sum over the parts along (midpoint rule), "
        "and how much rounding may leave.",
        tuple(columns),
        "a step of SGD is the gradient of few samples, a step of the SDE is Gaussian: their squares along the symmetry "
        "differ, what they add up to does not (5).",
    )


def _reached(parts: Any, word: str) -> np.ndarray:
    """How far each path has got by the end."""
    return np.linalg.norm({"along": parts.parallel, "across": parts.orthogonal}[word].sum(axis=1), axis=-1)


def _at_end(solution: Any) -> Any:
    end = slice(-1, None)
    kept = {name: getattr(solution, name)[end] for name in ("t", "steps", "tracked_steps")}
    return replace(solution, values=solution.values[:, end], moments=None, **kept)


def _t_end(results: Results) -> float:
    return results.settings.law_steps * results.settings.learning_rate


def _mean_error(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def _row(label: str, measured: np.ndarray, predicted: np.ndarray) -> Row:
    return Row(label, float(measured.mean()), float(predicted.mean()), _mean_error(measured - predicted)[1])


def _ratio(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    """a/b of independent means, with its standard error to first order."""
    if not b[0]:
        return np.nan, np.nan
    return a[0] / b[0], float(np.hypot(a[1], a[0] / b[0] * b[1]) / abs(b[0]))


def _paired_ratio(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """The same of two numbers of each path."""
    mean = float(b.mean())
    if not mean:
        return np.nan, np.nan
    value = float(a.mean()) / mean
    return value, _mean_error(a - value * b)[1] / abs(mean)


def shown(value: float, error: float, digits: int = 2, size: float | None = None) -> str:
    """A number with as many decimals as show so many digits of its error; a dash where there is none.

    `size` is the largest number beside which it stands: all of them are written out, or all in powers of ten.
    """
    if np.isnan(value):
        return "-"
    if not np.isfinite(error) or error <= 0:
        return f"{value:.5g}"
    if max(abs(value) if size is None else size, error) < 1e-3:
        return f"{value:.2e}"
    return f"{value:.{int(np.clip(digits - 1 - np.floor(np.log10(error)), 0, 7))}f}"


def _pm(values: np.ndarray, digits: int = 2) -> str:
    return _plus_minus(*_mean_error(values), digits)


def _plus_minus(mean: float, error: float, digits: int = 2) -> str:
    if not error > 0:
        return shown(mean, error)
    return f"{shown(mean, error, digits)} ± {shown(error, error, digits, abs(mean))}"
