"""Comparison: what two runs differ in, time by time, each number beside its error."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError

__all__ = ["Comparison"]

COLUMNS = 4
"""Components that a table lists in full; of more it shows the one that stands out most."""
LINES = 12
"""Times that `repr` shows at most."""


@dataclass(frozen=True, repr=False, eq=False)
class Comparison:
    """Two runs a and b seen through one observable, at the times they share.

    Arrays are (n_times,), or (n_times, q) for an observable of q numbers. NaN stands where there is no number: a
    standard error of one path, z where nothing is random yet, everything at times with a stopped path (unless skipped).
    """

    observable: str
    names: tuple[str, str]
    labels: tuple[str, ...]
    """Names of the q components; empty for an observable of one number."""
    t: np.ndarray
    mean_a: np.ndarray
    mean_b: np.ndarray
    stderr_a: np.ndarray
    stderr_b: np.ndarray
    difference: np.ndarray
    """mean_a - mean_b."""
    stderr: np.ndarray
    """Standard error of `difference`: of the paired differences with `paired`, else √(stderr_a² + stderr_b²)."""
    effect_size: np.ndarray
    """difference / pooled standard deviation of one path (Cohen's d): how far apart the laws are, whatever n."""
    z: np.ndarray
    """difference / stderr: how far apart they are seen to be. With few paths it is Student-distributed, not normal."""
    ks: np.ndarray
    """Kolmogorov-Smirnov distance of the two samples."""
    p_value: np.ndarray
    """Chance of such a `ks` under one law; conservative where paths share noise."""
    wasserstein: np.ndarray
    """Wasserstein-1 distance of the two samples, ∫|F_a - F_b|, in units of the observable."""
    wasserstein_stderr: np.ndarray
    """Its standard error where the laws differ, of pairs with `paired`."""
    wasserstein_chance: np.ndarray
    """What it would be on average under one law: a distance of this size says nothing."""
    n_a: np.ndarray
    n_b: np.ndarray
    """(n_times,) paths that enter."""
    stopped_a: np.ndarray
    stopped_b: np.ndarray
    """(n_times,) paths that have left the finite numbers, or have stopped for another reason."""
    paired: bool
    notes: tuple[str, ...] = ()
    """What a reader must know: times left out, paths left out or stopped."""

    @property
    def n_components(self) -> int:
        """q; 1 for an observable of one number."""
        return max(1, len(self.labels))

    def to_arrays(self) -> dict[str, Any]:
        """Every field by name, text included, as `numpy.savez(file, **comparison.to_arrays())` takes them."""
        return {f.name: np.asarray(getattr(self, f.name)) for f in fields(self)}

    def table(self, component: int | None = None, *, max_times: int | None = None) -> str:
        """The numbers as text, a line for each time.

        Parameters
        ----------
        component : int, optional
            Of an observable of several numbers, show this one. By default all of them where there are at most four,
            otherwise at each time the one with the largest \\|z\\|, which is the largest of many and is to be read so.
        max_times : int, optional
            Show this many times at most, the last among them.
        """
        q = self.n_components
        if component is not None and not -q <= _check.count("component", component, least=-q) < q:
            raise ArgumentError(f"component must be an index of the {q} numbers of {self.observable}, got {component}")
        head = ["t", *self.names, "difference", "std. error", "z", "effect", "KS", "p", "W1", "std. error", "chance"]
        rows = [["" if not self.labels else "of", *head] if self.labels else head]
        times = np.arange(self.t.size)
        if max_times is not None and _check.count("max_times", max_times) < times.size:
            times = np.unique(np.linspace(self.t.size - 1, 0, max_times).round().astype(int))
        for k in times.tolist():
            if component is not None:
                shown = [component % q]
            elif q <= COLUMNS:
                shown = list(range(q))
            else:
                shown = [self._standing_out(k)]
            for c in shown:
                rows.append(([self.labels[c]] if self.labels else []) + [f"{self.t[k]:.6g}", *self._cells(k, c)])
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows]
        if component is None and q > COLUMNS:
            lines.append(f"each line: the component with the largest |z| of {q}")
        return "\n".join(lines)

    def _standing_out(self, k: int) -> int:
        size = np.abs(self.z[k])
        return int(np.nanargmax(size)) if np.isfinite(size).any() else 0

    def _cells(self, k: int, c: int) -> list[str]:
        def at(values: np.ndarray) -> float:
            return float(values[k, c] if self.labels else values[k])

        formats = [(self.mean_a, ".6g"), (self.mean_b, ".6g"), (self.difference, ".3g"), (self.stderr, ".2g")]
        formats += [(self.z, ".2f"), (self.effect_size, ".2f"), (self.ks, ".3f"), (self.p_value, ".2g")]
        formats += [(self.wasserstein, ".3g"), (self.wasserstein_stderr, ".2g"), (self.wasserstein_chance, ".2g")]
        return ["-" if np.isnan(at(v)) else format(at(v), how) for v, how in formats]

    def __repr__(self) -> str:
        a, b = self.names
        how = "paired: path i of both runs shares its noise" if self.paired else "independent runs"
        head = (
            f"Comparison of {self.observable}: {a} ({_range(self.n_a)} paths) - {b} ({_range(self.n_b)} paths), {how}"
        )
        notes = [f"note: {note}" for note in self.notes]
        if self.t.size > LINES:
            notes.append(f"{LINES} of {self.t.size} times shown; .table() shows all")
        return "\n".join([head, self.table(max_times=LINES), *notes])


def _range(counts: np.ndarray) -> str:
    low, high = int(counts.min()), int(counts.max())
    return str(low) if low == high else f"{low} to {high}"
