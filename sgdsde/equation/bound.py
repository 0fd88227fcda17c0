"""A user's SDE at a start: the equation that the runner integrates, compiled or, where that fails, in Python."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sgdsde._errors import ArgumentError, ModelError, ShapeError
from sgdsde.equation._equation import Kernels
from sgdsde.equation.agreement import all_python, disagreement
from sgdsde.equation.compile import Compiled, compile_increment, unwrap
from sgdsde.equation.packing import clean_args, pack
from sgdsde.equation.probing import (
    DIAGONAL,
    MATRIX,
    call_with_args,
    check_drift,
    check_finite,
    diffusion_form,
    function_name,
)

if TYPE_CHECKING:
    from sgdsde.equation.sde import SDE

__all__ = ["BoundSDE"]


class BoundSDE:
    """An `SDE` at a start: the `Equation` that the runner integrates. Made by `SDE.bind`.

    Attributes
    ----------
    dim, noise_dim : int
        d and m.
    noise, calculus : str
        As declared.
    sde, t0, y0, args
        What was bound.
    form : str
        Layout of the diffusion's return: 'column' (d,) with m = 1, 'diagonal' (d,) with m = d, 'matrix' (d, m).
    has_derivative, exact_correction : bool
        Whether the INCREMENT takes the extended noise (`sgdsde.equation.derivative`). `Kernels.work` then has room for
        it, in front of what the increment itself needs.
    """

    block: int | None = None

    def __init__(self, sde: SDE, t0: float, y0: np.ndarray, args: tuple[Any, ...], noise_dim: int, form: str) -> None:
        self.sde, self.t0, self.y0, self.args, self.form = sde, t0, y0, args, form
        self.dim, self.noise_dim, self.noise, self.calculus = sde.dim, noise_dim, sde.noise, sde.calculus
        self.has_derivative = self.exact_correction = sde.derivative is not None
        self._columns: Any = None
        self._diagonal: bool | None = None
        self._in_python = False
        self._checked: tuple[Any, str, str] | None = None

    def __repr__(self) -> str:
        return f"{self.sde!r} at t={self.t0:g} with {self.noise_dim} noise{'s'[: self.noise_dim != 1]}"

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_columns": None, "_checked": None}

    def evaluate(self, t: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """f (d,) and G at a state, computed in Python; G is (d,) where the layout is 'diagonal', (d, m) otherwise."""
        drift, diffusion, d = self.sde.drift, self.sde.diffusion, self.dim
        f = check_drift(drift, _call(drift, t, y, self.args), d)
        g, form, m = diffusion_form(diffusion, _call(diffusion, t, y, self.args), d, self.noise)
        if (form, m) != (self.form, self.noise_dim):
            raise ShapeError(f"diffusion returned another shape at t={t:g} than at the start: {g.shape}")
        return f, g if form == DIAGONAL else g.reshape(d, m)

    def check_additive(self, g: np.ndarray) -> None:
        """ModelError where G, which is g at the start, changes with y."""
        y = self.y0 + 0.125 * (1.0 + np.abs(self.y0))
        try:
            other, _, _ = diffusion_form(
                self.sde.diffusion, _call(self.sde.diffusion, self.t0, y, self.args), self.dim, self.noise
            )
            same = np.array_equal(other, g)
        except Exception:
            same = False  # it fails at another state only, so it looks at the state
        if not same:
            raise ModelError(
                f"noise='additive' but diffusion ({function_name(self.sde.diffusion)}) changes with y; "
                "noise='scalar', 'diagonal' or 'general' may depend on y"
            )

    def check_derivative(self) -> None:
        """ShapeError or ModelError where the derivative at the start, or near it, is not that of the diffusion."""
        from sgdsde.equation import derivative

        function, t, y = self.sde.derivative, self.t0, self.y0
        returned = call_with_args("derivative", function, t, y, self.args)
        D = derivative.check_derivative(function, returned, self.dim, self.noise_dim, self.form)
        check_finite("derivative", function, D, t, y)

        def diffusion(y: np.ndarray) -> np.ndarray:
            g = diffusion_form(self.sde.diffusion, _call(self.sde.diffusion, t, y, self.args), self.dim, self.noise)[0]
            return g if self.form == MATRIX else g.reshape(self.dim)

        derivative.check_differences(function, D, diffusion, y, self.form)
        moved = y + 0.125 * (1.0 + np.abs(y))  # at a symmetric start a wrong one may be right
        try:
            returned = _call(function, t, moved, self.args)
            there = derivative.check_derivative(function, returned, self.dim, self.noise_dim, self.form)
            finite = np.isfinite(there).all() and np.isfinite(diffusion(moved)).all()
        except Exception:
            return  # the functions are made for states like the start alone
        if finite:
            derivative.check_differences(function, there, diffusion, moved, self.form)

    def kernels(self, *, correction: bool = False) -> Kernels:
        """Compiled INCREMENT (and CORRECTION, by column differences unless there is a derivative) with what they read.

        Compiles at the first call, in about 0.3 s; then again only when what the functions compute has changed.
        """
        made, held = self._compiled()
        kernels, at_fault, reason = None, made.at_fault, made.reason
        if made.increment is not None:
            kernels = Kernels(made.increment, None, *pack(held), work=(made.work, 0))
            at_fault, reason = self._disagreement(kernels)
        self._in_python = kernels is None or bool(reason)
        if kernels is None or self._in_python:
            _warn_once(at_fault, getattr(self.sde, at_fault), reason)
            kernels = self._python_kernels()
        if self.has_derivative:
            from sgdsde.equation.derivative import with_derivative

            return with_derivative(kernels, self.noise_dim, self.form, correction)
        if not correction:
            return kernels
        from sgdsde.equation.differences import with_correction

        return with_correction(self, kernels)

    def columns_kernel(self) -> Any:
        """The COLUMNS kernel that reads what the kernels made last read (`sgdsde.equation.columns`)."""
        if self._in_python:
            from sgdsde.equation.python_increment import python_columns

            return python_columns
        if self.form != MATRIX:
            return None
        from sgdsde.equation.columns import compile_columns

        names = ("drift", "diffusion", *(("derivative",) if self.has_derivative else ()))
        return compile_columns(unwrap(self.sde.diffusion), tuple(self._compiled()[1]), names, self.dim, self.noise_dim)

    def _compiled(self) -> tuple[Compiled, Sequence[Any]]:
        """The increment, and what it reads: args and the values of partials."""
        calls = {"drift": unwrap(self.sde.drift), "diffusion": unwrap(self.sde.diffusion)}
        if self.sde.derivative is not None:
            calls["derivative"] = unwrap(self.sde.derivative)
        held: list[Any] = [self.args]
        for label, call in calls.items():
            try:
                held += clean_args("what it holds", (call.before, call.values))
            except ArgumentError as error:
                return Compiled(None, 0, f"it is a functools.partial, and {error}", label), held
        d, m = self.dim, self.noise_dim
        derivative = calls.get("derivative")
        return compile_increment(calls["drift"], calls["diffusion"], tuple(held), d, m, self.form, derivative), held

    def _disagreement(self, kernels: Kernels) -> tuple[str, str]:
        """Which function gives another number when compiled than in Python at the start, and how; once per kernel.

        What a person compiled is taken at its word.
        """
        if self._checked is not None and self._checked[0] is kernels.increment:
            return self._checked[1:]
        v = 1.0 + 0.5 * np.cos(np.arange(self.noise_dim))
        label, reason = "", ""
        if all_python(unwrap(self.sde.drift).function):
            label, reason = "drift", disagreement(lambda: self._at_start(kernels, 1.0, 0.0 * v), self._f, *self._start)
        if not reason and all_python(unwrap(self.sde.diffusion).function):
            label, reason = (
                "diffusion",
                disagreement(lambda: self._at_start(kernels, 0.0, v), lambda t, y: self._g(t, y, v), *self._start),
            )
        if not reason and self.sde.derivative is not None and all_python(unwrap(self.sde.derivative).function):
            label, reason = self._derivative_disagreement(kernels)
        self._checked = kernels.increment, label, reason
        return label, reason

    def _derivative_disagreement(self, kernels: Kernels) -> tuple[str, str]:
        from sgdsde.equation.derivative import extended_rows

        m = self.noise_dim
        u = 1.0 + 0.5 * np.cos(np.arange(extended_rows(m, self.form) - m))
        v = np.concatenate([np.zeros(m), u])

        def python(t: float, y: np.ndarray) -> np.ndarray:
            return self._double_sum(t, y, self.evaluate(t, y)[1], u)

        return "derivative", disagreement(lambda: self._at_start(kernels, 0.0, v), python, *self._start)

    @property
    def _start(self) -> tuple[float, np.ndarray]:
        return self.t0, self.y0

    def _at_start(self, kernels: Kernels, h: float, v: np.ndarray) -> np.ndarray:
        """f·h + G·v, (d,), by the kernel."""
        out, x, work = np.empty((self.dim, 1)), self.y0[:, None].copy(), np.empty(sum(kernels.work))
        kernels.increment(out, x, np.full(1, self.t0), np.full(1, h), v[:, None], kernels.p, kernels.data, work)
        return out[:, 0]

    def _f(self, t: float, y: np.ndarray) -> np.ndarray:
        return check_drift(self.sde.drift, _call(self.sde.drift, t, y, self.args), self.dim)

    def _g(self, t: float, y: np.ndarray, v: np.ndarray) -> np.ndarray:
        """G·v, (d,), in Python."""
        returned = _call(self.sde.diffusion, t, y, self.args)
        g, form, m = diffusion_form(self.sde.diffusion, returned, self.dim, self.noise)
        return g * v if form == DIAGONAL else g.reshape(self.dim, m) @ v

    def _double_sum(self, t: float, y: np.ndarray, g: np.ndarray, u: np.ndarray) -> np.ndarray:
        """What extended noise u adds to an increment, (d,), in Python."""
        from sgdsde.equation.derivative import check_derivative, double_sum

        function = self.sde.derivative
        D = check_derivative(function, _call(function, t, y, self.args), self.dim, self.noise_dim, self.form)
        return double_sum(g, D, u, self.form)

    def measured_diagonal(self) -> bool:
        """Whether entry i of a diagonal G depends on y[i] alone, measured around the start (once)."""
        if self._diagonal is None:
            from sgdsde.equation.structure import noise_structure

            self._diagonal = noise_structure(self).diagonal
        return self._diagonal

    def _python_kernels(self) -> Kernels:
        from sgdsde.equation.python_increment import PythonColumns, python_increment

        if self._columns is None:
            double_sum = self._double_sum if self.has_derivative else None
            self._columns = PythonColumns(self.evaluate, self.form == DIAGONAL, double_sum)
        return Kernels(python_increment, None, self._columns.p(), np.zeros(0), (0, 0))


def _call(function: Any, t: float, y: np.ndarray, args: Sequence[Any]) -> Any:
    """Evaluate without ceremony: what the function raises is what the caller gets."""
    with np.errstate(all="ignore"):
        return function(t, y.copy(), *args)


_warned: set[Any] = set()


def _warn_once(label: str, function: Any, reason: str) -> None:
    inner = getattr(unwrap(function).function, "__func__", unwrap(function).function)
    inner = getattr(inner, "py_func", inner)
    key = getattr(inner, "__code__", None) or type(inner)
    if key in _warned:
        return
    _warned.add(key)
    level, frame = 2, sys._getframe(1)  # point at the first line outside the package
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("sgdsde."):
        level, frame = level + 1, frame.f_back
    warnings.warn(
        f"{label} {function_name(function)} cannot be compiled and runs in Python, some 100 times slower: {reason}",
        RuntimeWarning,
        stacklevel=level,
    )
