"""The table of the demo as text, and everything as numbers in one file."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit

from sgdsde.cli._demo_rows import Row, Section, sections, shown
from sgdsde.cli._demo_runs import Results

__all__ = ["save", "text"]

WIDTH = 118


def text(results: Results) -> str:
    """The table, with a sentence for every kind of line."""
    found = sections(results)
    lines = _head(results)
    cells = [_cells(row) for section in found for row in section.rows]
    head = ("", "measured", "predicted", "std. error", "z")
    widths = [max(map(len, column)) for column in zip(head, *cells)]
    for section in found:
        lines += ["", *_wrapped(section.title, "", "   "), _line(head, widths)]
        lines += [_line(_cells(row), widths) for row in section.rows]
        lines += _wrapped(section.meaning)
        if section.columns:
            lines += [_line(row, [max(map(len, c)) for c in zip(*section.columns)]) for row in section.columns]
            lines += _wrapped(section.about_columns)
    return "\n".join([*lines, "", *_foot(results, found)])


def save(results: Results, path: Path) -> None:
    """Everything as arrays: the table, the charge and its parts along every run, and the settings."""
    rows = [row for section in sections(results) for row in section.rows]
    arrays: dict[str, Any] = {"table_label": np.array([row.label for row in rows])}
    for name in ("measured", "predicted", "error", "z"):
        arrays[f"table_{name}"] = np.array([getattr(row, name) for row in rows])
    for label, solution in {**results.runs, **results.sides}.items():
        name, report = _slug(label), results.law.report(solution)
        arrays[f"{name}_t"], arrays[f"{name}_charge"] = report.t, results.law.charge(solution.y)
        arrays[f"{name}_theta"] = solution.y[:, -1]
        for part in ("delta", "noise", "gradient", "decay", "continuous", "predicted"):
            arrays[f"{name}_{part}"] = getattr(report, part)
    for label, parts in results.parts.items():
        arrays[f"{_slug(label)}_decomposition_t"] = parts.t
        arrays[f"{_slug(label)}_length_along"] = parts.length_parallel
        arrays[f"{_slug(label)}_length_across"] = parts.length_orthogonal
    settings = results.settings._asdict()
    arrays |= {name: np.asarray(settings[name]) for name in settings if name not in ("X", "Y", "out")}
    arrays |= {"theta0": results.theta0, "theta_equilibrium": results.theta}
    np.savez(path, **arrays)


def _head(results: Results) -> list[str]:
    s, problem = results.settings, results.problem
    end = problem.loss(next(iter(results.runs.values())).y[:, -1]).mean()
    layers = " -> ".join(map(str, problem.model.dims))
    about = (
        f"SGD on {s.data}: {problem.n_samples} samples, linear layers {layers}, squared loss; η = {s.learning_rate:g}, "
        f"S = {s.batch_size}, γ = {s.gamma:g}, σ² = η/2S = {problem.sigma2:g}, ρ = {problem.rho:g}. {s.paths} paths of "
        f"every run, seed {s.seed}. Time is t = η·step. C = ‖W2‖² - ‖W1‖² is the charge of the symmetry W1 -> e^-λ W1, "
        f"W2 -> e^λ W2. Loss {problem.loss(results.theta0):.3g} at the start, {end:.3g} after {s.law_steps} steps."
    )
    return _wrapped(about, "", "")


def _foot(results: Results, found: Sequence[Section]) -> list[str]:
    z = np.array([row.z for section in found for row in section.rows])
    z = z[np.isfinite(z)]
    freedom = results.settings.paths - 1
    rare = float(stdtrit(freedom, 1 - 0.005 / max(z.size, 1)))
    about = (
        "std. error is that of measured - predicted, from the spread over paths, and z is their ratio; a line without "
        f"z is exact but for rounding. With {freedom + 1} paths the largest of {z.size} |z| passes {rare:.1f} once in "
        f"100 by chance; here it is {np.abs(z).max(initial=0.0):.1f}."
    )
    return _wrapped(about, "", "")


def _cells(row: Row) -> tuple[str, ...]:
    if row.exact:
        return row.label, f"{row.measured:.1e}", f"{row.predicted:g}", f"{row.error:.1e}", ""
    size = np.nanmax(np.abs([row.measured, row.predicted, 0.0]))
    numbers = (shown(x, row.error, 3, size) for x in (row.measured, row.predicted, row.error))
    return row.label, *numbers, "-" if np.isnan(row.z) else f"{row.z:.2f}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = cells
    right = "  ".join(cell.rjust(width) for cell, width in zip(rest, widths[1:]))
    return f"     {first.ljust(widths[0])}  {right}".rstrip()


def _wrapped(words: str, first: str = "   ", rest: str = "   ") -> list[str]:
    return textwrap.wrap(words, WIDTH, initial_indent=first, subsequent_indent=rest)


def _slug(label: str) -> str:
    words = "".join(c if c.isalnum() else " " for c in label.lower().replace("η", "eta"))
    return "_".join(words.split())
