"""What kind of noise an equation has, measured: additive, scalar, diagonal, commutative or general.

A method of order 1 for diagonal or commutative noise is a method of order ½, or plainly wrong, for any other. So the
columns b_j(x) of G are taken from the compiled INCREMENT (h = 0, v = e_j) at states around a start, and compared:

- additive: G is the same at all of them;
- diagonal (Kloeden–Platen's sense): m = d, only the diagonal is not zero, and entry i depends on component i alone;
- commutative: (b_i·∇)b_j = (b_j·∇)b_i for all pairs, derivatives by differences of fourth order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ModelError

__all__ = ["NoiseStructure", "noise_structure"]

MOST_COLUMNS = 64  # all columns are compared up to here; beyond, SAMPLED of them
SAMPLED = 16
POINTS = 4
EQUAL = 1e-12  # relative: what rounding may do to a value that stays
STEP = 2e-3  # of the fourth-order differences; their error is about STEP**4 + eps/STEP = 1e-11
ROUNDING = 1e-14  # relative error of an entry of G
COMMUTES = 1e-7  # relative: least commutator that is taken for one
UNDECIDED = 1e-2  # relative error of a derivative that says nothing


@dataclass(frozen=True)
class NoiseStructure:
    """The outcome of `noise_structure`; prints as a sentence.

    Attributes
    ----------
    kind : {'none', 'additive', 'scalar', 'diagonal', 'commutative', 'general'}
        The first of these that holds.
    additive, diagonal, commutative : bool
        Each by itself: scalar noise, say, may be additive and is always commutative.
    witness : str
        What breaks the kinds that do not hold: entries, columns and sizes. Empty when all hold.
    measured : dict
        'noise_dim', 'points' (states at which G was finite), 'columns' (how many were compared), 'change' (largest
        relative change of G between states), 'off_diagonal' and 'cross' (largest relative off-diagonal entry, and
        change of an entry with another component), 'commutator' (largest relative commutator) and 'tolerance' (below
        which it is zero).
    """

    kind: str
    additive: bool
    diagonal: bool
    commutative: bool
    witness: str
    measured: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.kind} noise" + (f": {self.witness}" if self.witness else "")


def noise_structure(equation: Any, y0: Any = None, t0: float = 0.0, *, args: Any = None) -> NoiseStructure:
    """Measure whether noise is additive, diagonal in Kloeden–Platen's sense, or commutative around a state.

    Parameters
    ----------
    equation : SDE, other problem, or bound equation
        What to measure.
    y0 : array_like, (d,), optional
        Measure around this state: at itself, and at three more whose components differ by up to a fifth (of
        themselves, or of 1 where zero). By default the state that the equation is bound to, or numbers between 1 and
        2.
    t0 : float
        Time. Noise that depends on time alone is additive.
    args : tuple, optional
        In place of the SDE's own.

    Returns
    -------
    NoiseStructure

    Raises
    ------
    ModelError
        G is finite at none of the states, or not at `y0`.

    Notes
    -----
    A property that holds at the sampled states may fail elsewhere (behind an `if`, say). States at which G cannot be
    evaluated are left out. Costs O(d·m) evaluations for diagonal noise, O(m²) for commutative; of more than 64
    columns 16 are compared.

    Examples
    --------
    G = diag(y₂, y₁) is a diagonal matrix, yet not diagonal noise:

    >>> from sgdsde import SDE, noise_structure
    >>> sde = SDE(lambda t, y: (0.0, 0.0), lambda t, y: (y[1], y[0]), dim=2, noise="diagonal")
    >>> result = noise_structure(sde, [1.0, 1.0])
    >>> result.kind, result.diagonal
    ('general', False)
    >>> print(result)  # doctest: +ELLIPSIS
    general noise: ... entry 1 of the diagonal changes with y[0] ...
    """
    if hasattr(equation, "bind") and not isinstance(equation, type):
        if y0 is None:
            y0 = 1.0 + np.arange(equation.dim) / equation.dim
        equation = equation.bind(t0, np.asarray(y0), args)
    elif not hasattr(equation, "kernels") or isinstance(equation, type):
        raise ArgumentError(f"equation must be an SDE or a bound equation, got {_check.show(equation)}")
    elif args is not None:
        raise ArgumentError("args are already settled in a bound equation")
    if y0 is None:
        y0 = getattr(equation, "y0", None)
        if y0 is None:
            raise ArgumentError("y0 must be given for this equation: it knows no start")
    y0 = _check.array("y0", y0, (equation.dim,))
    if equation.noise_dim == 0:
        return NoiseStructure("none", True, False, True, "", {"noise_dim": 0})
    return _measure(_Columns(equation, float(t0)), y0)


class _Columns:
    """Columns of G at one state after another, from the INCREMENT."""

    def __init__(self, equation: Any, t0: float) -> None:
        self.kernels = equation.kernels()
        self.d, self.m, self.t0 = equation.dim, equation.noise_dim, t0
        m = self.m
        self.chosen = np.arange(m) if m <= MOST_COLUMNS else np.unique(np.linspace(0, m - 1, SAMPLED).astype(int))
        self.v = np.zeros((m, len(self.chosen)))
        self.v[self.chosen, np.arange(len(self.chosen))] = 1.0

    def __call__(self, y: np.ndarray) -> np.ndarray | None:
        """G (d, columns) at y; None where it is not finite or raises."""
        k, width = self.kernels, len(self.chosen)
        x = np.repeat(y[:, None], width, axis=1)
        out, work = np.empty_like(x), np.empty(k.work[0] + k.work[1] * width)
        try:
            k.increment(out, x, np.full(width, self.t0), np.zeros(width), self.v, k.p, k.data, work)
        except Exception:  # user's code, at a state that the user did not choose
            return None
        return out if np.isfinite(out).all() else None


def _measure(columns: _Columns, y0: np.ndarray) -> NoiseStructure:
    points = _points(y0)
    found = [(y, G) for y, G in ((y, columns(y)) for y in points) if G is not None]
    if not found or found[0][0] is not points[0]:
        raise ModelError(f"the noise coefficient cannot be evaluated, or is not finite, at y={y0}")
    scale = max(float(np.abs(G).max()) for _, G in found)
    measured: dict[str, Any] = {
        "noise_dim": columns.m,
        "points": len(found),
        "columns": len(columns.chosen),
    }
    if scale == 0.0:
        return NoiseStructure("none", True, columns.m == columns.d, True, "", measured)
    witness = []

    change, where = max(((float(np.abs(G - found[0][1]).max()), k) for k, (_, G) in enumerate(found)), default=(0.0, 0))
    measured["change"] = change / scale
    additive = change <= EQUAL * scale
    if not additive:
        i, j = np.unravel_index(np.argmax(np.abs(found[where][1] - found[0][1])), found[0][1].shape)
        witness.append(f"not additive, G[{i}, {columns.chosen[j]}] changes with y by {change:.2g}")

    diagonal, reason = _is_diagonal(columns, found, scale, measured)
    if not diagonal:
        witness.append(f"not diagonal, {reason}")

    if additive or columns.m == 1 or diagonal:
        commutative = True
    else:
        commutative, reason = _commutes(columns, found, scale, measured)
        if not commutative:
            witness.append(f"not commutative, {reason}")

    kinds = {"additive": additive, "scalar": columns.m == 1, "diagonal": diagonal, "commutative": commutative}
    kind = next((name for name, holds in kinds.items() if holds), "general")
    return NoiseStructure(kind, additive, diagonal, commutative, "; ".join(witness), measured)


def _points(y0: np.ndarray) -> list[np.ndarray]:
    """y0 and states near it that keep its signs: a fixed sequence that fills the cube evenly."""
    d = len(y0)
    size = np.where(y0 != 0.0, np.abs(y0), 1.0)
    irrational = np.sqrt(np.arange(2, d + 2) + 0.3)
    return [y0] + [y0 + 0.2 * size * (2.0 * np.mod(k * irrational + 0.37, 1.0) - 1.0) for k in range(1, POINTS)]


def _is_diagonal(columns: _Columns, found: list, scale: float, measured: dict[str, Any]) -> tuple[bool, str]:
    d, m = columns.d, columns.m
    if m != d:
        return False, f"m = {m} noises for d = {d} components"
    rows = columns.chosen
    for _, G in found:
        off = np.abs(G).copy()
        off[rows, np.arange(len(rows))] = 0.0
        measured["off_diagonal"] = max(measured.get("off_diagonal", 0.0), float(off.max()) / scale)
        if off.max() > EQUAL * scale:
            row, column = np.unravel_index(np.argmax(off), off.shape)
            return False, f"G[{row}, {rows[column]}] = {G[row, column]:.3g} is off the diagonal"
    moved = range(d) if d <= MOST_COLUMNS else [int(j) for j in rows]
    for y, G in found:
        for j in moved:
            other = columns(_moved(y, j))
            if other is None:
                continue
            shift = np.abs(other - G)[rows, np.arange(len(rows))]
            shift[rows == j] = 0.0
            measured["cross"] = max(measured.get("cross", 0.0), float(shift.max()) / scale)
            if shift.max() > EQUAL * scale:
                return (
                    False,
                    f"entry {rows[np.argmax(shift)]} of the diagonal changes with y[{j}] (by {shift.max():.2g})",
                )
    return True, ""


def _moved(y: np.ndarray, j: int) -> np.ndarray:
    other = y.copy()
    other[j] += 0.125 * abs(y[j]) if y[j] != 0.0 else 0.125
    return other


def _commutes(columns: _Columns, found: list, scale: float, measured: dict[str, Any]) -> tuple[bool, str]:
    worst, text = 0.0, ""
    for y, G in found:
        # D[j, :, i] = (b_j·∇) b_i
        formed = [_derivative(columns, y, G, j) for j in range(G.shape[1])]
        derivatives = [one for one in formed if one is not None]
        if len(derivatives) < len(formed):
            continue
        D = np.array([slopes for slopes, _ in derivatives])
        commutator = np.abs(D - D.transpose(2, 1, 0)).max(axis=1)
        typical = max(float(np.abs(D).max()), np.finfo(float).tiny)
        tolerance = COMMUTES + 10.0 * max(error for _, error in derivatives) / typical
        if tolerance > UNDECIDED:
            continue
        relative = float(commutator.max()) / typical
        measured["tolerance"] = max(measured.get("tolerance", 0.0), tolerance)
        measured["commutator"] = max(measured.get("commutator", 0.0), relative)
        if relative > max(tolerance, worst):
            worst = relative
            i, j = sorted(columns.chosen[k] for k in np.unravel_index(np.argmax(commutator), commutator.shape))
            text = f"columns {i} and {j} have a commutator of relative size {relative:.2g}"
    if "commutator" not in measured:
        return False, "derivatives of G could not be formed well enough to decide"
    return worst == 0.0, text


def _derivative(columns: _Columns, y: np.ndarray, G: np.ndarray, j: int) -> tuple[np.ndarray, float] | None:
    """(b_j·∇)G (d, columns) by central differences with one and two steps, extrapolated; and its error."""
    b = G[:, j]
    length = float(np.abs(b).max())
    if length == 0.0:
        return np.zeros_like(G), 0.0
    whole = STEP * (1.0 + float(np.abs(y).max())) / length
    both = (b != 0.0) & (y != 0.0)
    steps = [whole, 0.1 * whole]  # all states must be where G exists; the last resort is a part of each component
    steps += [STEP * float(np.abs(y[both] / b[both]).min())] if both.any() else []
    for eps in steps:
        near = [G for G in (columns(y + k * eps * b) for k in (-2, -1, 1, 2)) if G is not None]
        if len(near) < 4:
            continue
        one, two = (near[2] - near[1]) / (2.0 * eps), (near[3] - near[0]) / (4.0 * eps)
        better = (4.0 * one - two) / 3.0
        gap = float(np.abs(one - two).max())  # what is left after extrapolation is about its square
        left = gap * gap / max(float(np.abs(better).max()), gap, np.finfo(float).tiny)
        return better, left + ROUNDING * float(np.abs(G).max()) / eps
    return None
