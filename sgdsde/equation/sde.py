"""SDE: a stochastic differential equation written as two functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numba.cloudpickle
import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.equation.bound import BoundSDE
from sgdsde.equation.packing import clean_args
from sgdsde.equation.probing import (
    call_with_args,
    check_drift,
    check_finite,
    diffusion_form,
    function_name,
)

__all__ = ["SDE"]

NOISE = ("general", "commutative", "diagonal", "scalar", "additive")
CALCULI = ("ito", "stratonovich")


class SDE:
    """The equation dY = f(t, Y) dt + G(t, Y) dW, with d components and m independent standard Brownian motions W.

    Parameters
    ----------
    drift : callable
        ``drift(t, y, *args)`` with a float t and y of shape (d,) returns f: d numbers as a tuple, list or array (or the
        number itself where d = 1).
    diffusion : callable
        ``diffusion(t, y, *args)`` returns G in the layout that `noise` asks for. The intensity of the noise is in G
        alone: Var W(t) = t.
    dim : int
        Number of components d.
    noise : {'general', 'commutative', 'diagonal', 'scalar', 'additive'}
        - 'general': G is (d, m), always two-dimensional: a tuple of tuples, a list of lists or a 2-D array. m is read
          from it; nothing is guessed from d = m.
        - 'commutative': as 'general', and (b_i·∇)b_j = (b_j·∇)b_i for the columns b of G.
        - 'diagonal': G is (d,): component i has a noise of its own, and entry i depends on y[i] alone (Kloeden–Platen's
          sense).
        - 'scalar': one noise, m = 1: G is (d,) or (d, 1).
        - 'additive': G does not depend on y (it may on t). A 2-D return (d, m) is read as 'general' is, a 1-D return
          (d,) as 'diagonal': one noise for each component.

        `noise_structure` measures whether commutative and diagonal are true; additive is checked by `bind`.
    calculus : {'ito', 'stratonovich'}
        How ∫ G dW is meant. Solvers refuse the other one; `to_ito` and `to_stratonovich` convert.
    args : tuple
        What the functions take after t and y: numbers, bools, arrays of those, tuples of such. Their values change
        without compiling anything (`replace`, `solve(args=...)`).
    name : str, optional
        For people; the drift's name by default.
    derivative : callable, optional
        ``derivative(t, y, *args)`` returns the derivative of G with respect to y: ∂G_ij/∂y_k as (d, m, d), or
        ∂g_i/∂y_k as (d, d) where the diffusion returns the one column (d,), or ∂g_i/∂y_i as (d,) where it returns a
        diagonal (d,). `milstein` then takes one evaluation a step, and conversions are exact. It is held against
        differences of the diffusion at the start.

    Notes
    -----
    The functions see one state at a time. Plain Python functions are compiled by numba, with the plain functions that
    they call; compiled ones are used as they are. A `functools.partial` is looked through. What numba cannot compile
    (methods, callable objects, dictionaries, SciPy) runs in Python, some hundred times slower, after one
    RuntimeWarning that says why. Globals and closures count with the values they have when a solver starts. Returning
    tuples, or lists and ``np.array`` written in the ``return`` itself, is fastest; other arrays cost an allocation
    (30 ns) at each evaluation.

    Compiled code is held against Python once, at the start: a function that gives another number there (an int to a
    negative power is 0 in compiled code) runs in Python, after a warning. Indices are checked, but in functions that a
    person compiled without ``boundscheck=True``. An exception that a function raises passes through the solver to the
    caller, compiled or not. A pickled SDE carries its functions, lambdas too.

    Examples
    --------
    >>> from sgdsde import SDE
    >>> def drift(t, y, rate): return (-rate * y[0],)
    >>> def diffusion(t, y, rate): return (0.5 * y[0],)
    >>> sde = SDE(drift, diffusion, dim=1, noise="diagonal", args=(1.0,))
    >>> sde
    SDE(drift, diffusion, dim=1, noise='diagonal', calculus='ito', args=(1.0,))
    >>> sde.replace(args=(2.0,)).args
    (2.0,)
    """

    __slots__ = ("args", "calculus", "derivative", "diffusion", "dim", "drift", "name", "noise")

    def __init__(
        self,
        drift: Callable[..., Any],
        diffusion: Callable[..., Any],
        dim: int,
        noise: str = "general",
        calculus: str = "ito",
        args: Sequence[Any] = (),
        name: str | None = None,
        derivative: Callable[..., Any] | None = None,
    ) -> None:
        for label, function in (("drift", drift), ("diffusion", diffusion), ("derivative", derivative)):
            if not callable(function) and not (label == "derivative" and function is None):
                raise ArgumentError(f"{label} must be a function of (t, y, *args), got {_check.show(function)}")
        if derivative is not None and noise == "additive":
            raise ArgumentError("derivative must be None for noise='additive', which has none: G does not depend on y")
        if name is not None and not isinstance(name, str):
            raise ArgumentError(f"name must be text, got {_check.show(name)}")
        self.drift = drift
        self.diffusion = diffusion
        self.derivative = derivative
        self.dim = _check.count("dim", dim)
        self.noise = _check.choice("noise", noise, NOISE)
        self.calculus = _check.choice("calculus", calculus, CALCULI)
        self.args = clean_args("args", args)
        self.name = name

    def replace(self, **changes: Any) -> SDE:
        """A new SDE with some parameters changed; compiled code is shared wherever the functions are the same."""
        unknown = sorted(set(changes) - set(self.__slots__))
        if unknown:
            raise ArgumentError(f"replace takes {', '.join(sorted(self.__slots__))}; got {', '.join(unknown)}")
        return SDE(**{**{field: getattr(self, field) for field in self.__slots__}, **changes})

    def bind(self, t0: float, y0: Any, args: Sequence[Any] | None = None) -> BoundSDE:
        """The equation at a start: its functions evaluated once in Python, shapes and values checked, m settled.

        Parameters
        ----------
        t0 : float
            Time of the start.
        y0 : array_like, (d,)
            State at the start.
        args : tuple, optional
            In place of the SDE's own.

        Raises
        ------
        ShapeError
            A function, or y0, has the wrong shape.
        ModelError
            A function cannot be evaluated, is not finite, or returns something other than real numbers; the
            derivative is not that of the diffusion.
        """
        t0 = _check.number("t0", t0)
        if np.ndim(y0) != 1:
            raise ShapeError(
                f"y0 must have shape ({self.dim},), got {np.shape(y0)}: the state of an equation is one-dimensional; "
                "flatten a matrix (C order), and reshape y inside the functions"
            )
        y0 = _check.array("y0", y0, (self.dim,))
        clean = self.args if args is None else clean_args("args", args)
        f = check_drift(self.drift, call_with_args("drift", self.drift, t0, y0, clean), self.dim)
        check_finite("drift", self.drift, f, t0, y0)
        returned = call_with_args("diffusion", self.diffusion, t0, y0, clean)
        g, form, m = diffusion_form(self.diffusion, returned, self.dim, self.noise)
        check_finite("diffusion", self.diffusion, g, t0, y0)
        bound = BoundSDE(self, t0, y0, clean, m, form)
        if self.noise == "additive":
            bound.check_additive(g)
        if self.derivative is not None:
            bound.check_derivative()
        return bound

    def __repr__(self) -> str:
        name = f"{self.name!r}, " if self.name else ""
        functions = f"{function_name(self.drift)}, {function_name(self.diffusion)}"
        words = f"dim={self.dim}, noise={self.noise!r}, calculus={self.calculus!r}"
        if self.derivative is not None:
            words += f", derivative={function_name(self.derivative)}"
        return f"SDE({name}{functions}, {words}{_args_text(self.args)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (numba.cloudpickle.dumps([getattr(self, field) for field in sorted(self.__slots__)]),)


def _restore(content: bytes) -> SDE:
    return SDE(**dict(zip(sorted(SDE.__slots__), numba.cloudpickle.loads(content))))


def _args_text(args: tuple[Any, ...]) -> str:
    if not args:
        return ""
    words = [f"array{entry.shape}" if isinstance(entry, np.ndarray) else _check.show(entry, 20) for entry in args]
    return f", args=({', '.join(words)}{',' if len(words) == 1 else ''})"
