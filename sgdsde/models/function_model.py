"""`from_functions`: a model from a loss and a gradient of one sample, compiled where numba can."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._address import address
from sgdsde._errors import ArgumentError, ModelError
from sgdsde.equation.compile import unwrap
from sgdsde.equation.packing import clean_args
from sgdsde.equation.probing import function_name
from sgdsde.equation.source import Call
from sgdsde.models._foreign import Foreign, code_token, read_symmetries
from sgdsde.models._foreign_check import GradientReport, check_gradient
from sgdsde.models._foreign_passes import owned
from sgdsde.models._foreign_python import FunctionPasses

__all__ = ["FunctionModel", "from_functions"]

DIFFERENCES = "differences"


def from_functions(
    loss: Callable[..., Any],
    gradient: Callable[..., Any] | str | None = None,
    *,
    dim: int | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    args: Sequence[Any] = (),
    symmetries: Mapping[str, Any] | None = None,
    theta0: Any = None,
    check: bool = True,
) -> FunctionModel:
    """A model from two functions of one sample: what `SGD` needs beside data.

    Parameters
    ----------
    loss : callable
        loss(theta, x, y, *args) -> ℓ, a number. theta is (d,), x = X[i] and y = Y[i]: a number where X or Y is (N,),
        an array where it has more axes. Integers in X and Y stay integers, anything else is float64.
    gradient : callable or "differences"
        gradient(theta, x, y, *args) -> ∇ℓ (d,), an array, a list or a tuple. "differences" takes central differences of
        the loss: 2d losses a gradient, a relative error of some 1e-10, so that `check_symmetry` fails at its usual
        tolerance.
    dim : int, optional
        d. Give it or `shapes`.
    shapes : mapping, optional
        Name -> shape of the arrays of which theta is made, in order, each raveled in C order: {"W": (3, 2), "b": (3,)}.
    args : sequence
        Numbers, bools and arrays handed to both functions; new ones compile nothing.
    symmetries : mapping, optional
        Name -> `Generator` or matrix (d, d), kept for `model.symmetries()`; `check_symmetry` tests them.
    theta0 : (d,) array_like, optional
        A start at which the functions can be evaluated; `init(0)` when not given.
    check : bool
        Whether each `SGD` made of the model compares gradient with differences of loss, at three samples.

    Returns
    -------
    FunctionModel

    Raises
    ------
    ArgumentError, ShapeError
        An argument is not what is wanted.
    ModelError
        From `SGD`: a function returns something else, changes theta, x or y, is not finite at the start, or gradient is
        not the derivative of loss; the message has a table of components.

    Notes
    -----
    Plain functions and numba's are compiled when an `SGD` is made, in about half a second; what they read from outside
    is taken then. Compiled functions run on all threads; a pass over all samples costs N gradients, a step of SGD S.
    What numba cannot compile runs in Python, after one warning. What a function raises reaches the caller. Products
    with second derivatives are central differences of gradients.

    Examples
    --------
    >>> import numpy as np, sgdsde as sg
    >>> def loss(theta, x, y, scale):
    ...     return scale * (theta[0] * theta[1] * x - y) ** 2
    >>> def gradient(theta, x, y, scale):
    ...     r = 2.0 * scale * (theta[0] * theta[1] * x - y) * x
    ...     return (r * theta[1], r * theta[0])
    >>> model = sg.models.from_functions(
    ...     loss, gradient, shapes={"u": (1,), "w": (1,)}, args=(0.5,), symmetries={"u/w": np.diag([1.0, -1.0])}
    ... )
    >>> problem = sg.SGD(model, [1.0, 2.0, -1.0], [0.5, 1.0, 1.0], learning_rate=0.1)
    >>> problem.gradient([1.0, 2.0])
    array([7. , 3.5])
    >>> bool(sg.check_symmetry(problem, model.symmetries()["u/w"]))
    True
    """
    return FunctionModel(loss, gradient, dim, shapes, args, symmetries, theta0, check)


class FunctionModel(Foreign):
    """What `from_functions` returns: a `Model`."""

    def __init__(
        self,
        loss: Callable[..., Any],
        gradient: Callable[..., Any] | str | None,
        dim: int | None,
        shapes: Mapping[str, Sequence[int]] | None,
        args: Sequence[Any],
        symmetries: Mapping[str, Any] | None,
        theta0: Any,
        check: bool,
    ) -> None:
        if not callable(loss):
            raise ArgumentError(f"loss must be a function of (theta, x, y, *args), got {_check.show(loss)}")
        if not callable(gradient) and gradient != DIFFERENCES:
            raise ArgumentError(
                f"gradient must be a function of (theta, x, y, *args), got {_check.show(gradient)}; gradient="
                "'differences' takes central differences of loss, 2d losses for each gradient and good to 1e-10 "
                "(models.from_torch and models.from_jax differentiate exactly)"
            )
        self.loss_function, self.gradient_function = loss, gradient
        self.shapes = _shapes(dim, shapes)
        self.dim = sum(int(np.prod(shape)) for shape in self.shapes.values())
        self.args = clean_args("args", args)
        self._generators = read_symmetries(symmetries, self.dim)
        self.check = _check.flag("check", check)
        self.theta0 = self.init(0) if theta0 is None else _check.array("theta0", theta0, (self.dim,))

    def __repr__(self) -> str:
        gradient = self.gradient_function
        shown = repr(gradient) if isinstance(gradient, str) else function_name(gradient)
        return f"from_functions({function_name(self.loss_function)}, {shown}, dim={self.dim})"

    def token(self) -> bytes:
        """See `Foreign.token`."""
        return code_token(self.loss_function) + code_token(self.gradient_function)

    def replace(self, args: Sequence[Any]) -> FunctionModel:
        """The same functions with other args."""
        return FunctionModel(
            self.loss_function, self.gradient_function, None, self.shapes, args, self._generators, self.theta0,
            self.check,
        )  # fmt: skip

    def check_gradient(self, X: Any, Y: Any, theta: Any = None) -> GradientReport:
        """Compare gradient with differences of loss at the first, the middle and the last sample.

        Parameters
        ----------
        X, Y : array_like
        theta : (d,) array_like, optional
            `theta0` when not given.

        Returns
        -------
        GradientReport
            True or false, prints as a table of the components that differ.
        """
        samples = self._unchecked().samples(X, Y)
        theta = self.theta0 if theta is None else self.check_theta(_check.array("theta", theta), one=True)
        return self._compared(samples.X, samples.Y, theta)

    # --- what the kernels read ----------------------------------------------------------------------------------------

    def _calls(self) -> list[Call]:
        """How the functions are called."""
        own = [self.loss_function] + ([self.gradient_function] if callable(self.gradient_function) else [])
        return [unwrap(function) for function in own]

    def held(self) -> tuple[Any, ...]:
        """args, and what partials hold."""
        held: list[Any] = [self.args]
        for call in self._calls():
            try:
                held += clean_args("what it holds", (call.before, call.values))
            except ArgumentError:
                return (self.args,)
        return tuple(held)

    def bind(self, X: np.ndarray, Y: np.ndarray, p: np.ndarray, data: np.ndarray) -> np.ndarray:
        """See `Foreign.bind`."""
        from sgdsde.models._foreign_kernels import LOSS
        from sgdsde.models._foreign_source import compile_functions
        from sgdsde.models.model import SAMPLE

        passes = FunctionPasses(self, X, Y)
        self._tried(passes)
        if self.check and callable(self.gradient_function):
            report = self._compared(X, Y, self.theta0)
            if not report:
                raise ModelError(f"{self!r}: {report}")
        calls, held = self._calls(), self.held()
        label, reason = "loss", "it is a functools.partial that holds other things than numbers and arrays"
        if len(held) == 1 + 2 * len(calls):
            made = compile_functions(calls[0], calls[1] if len(calls) > 1 else None, (X, Y, *held), self.dim)
            label, reason = made.at_fault, made.reason
            if not reason:
                kernels = address(made.sample, SAMPLE), address(made.loss, LOSS)
                q = owned([X.shape[0], 0, *kernels[0], *kernels[1], *p], made)
                label, reason = self._disagreement(passes, made, q, data)
                if not reason:
                    return q
        from sgdsde.equation.bound import _warn_once

        _warn_once(label, self.loss_function if label == "loss" else self.gradient_function, reason)
        return passes.numbers()

    def _disagreement(self, passes: FunctionPasses, made: Any, q: np.ndarray, data: np.ndarray) -> tuple[str, str]:
        """Which function gives another number when compiled than in Python at the start, and how."""
        from sgdsde.equation.agreement import all_python, disagreement

        work, out, start = np.empty(sum(self.work(passes.n))), np.empty(self.dim), self.theta0

        def loss() -> np.ndarray:
            return np.array([made.loss(start.copy(), 0, q, data, work)])

        def gradient() -> np.ndarray:
            made.sample(out, start.copy(), 0, q, data, work)
            return out

        if all_python(unwrap(self.loss_function).function):
            reason = disagreement(loss, lambda t, y: np.array([passes.loss(y, 0)]), 0.0, start)
            if reason:
                return "loss", reason
        if callable(self.gradient_function) and all_python(unwrap(self.gradient_function).function):
            return "gradient", disagreement(gradient, lambda t, y: passes.gradient(y, 0), 0.0, start)
        return "", ""

    # --- what is tried in Python --------------------------------------------------------------------------------------

    def _unchecked(self) -> FunctionModel:
        model = self.replace(self.args)
        model.check = False
        return model

    def _tried(self, passes: FunctionPasses) -> None:
        """Both functions at the start, at one sample: shapes, kinds, finiteness, and that they change nothing."""
        for label, function in (("loss", passes.loss), ("gradient", passes.gradient)):
            theta, x, y = self.theta0.copy(), np.copy(passes.X[0]), np.copy(passes.Y[0])
            value = function(theta, 0)
            for name, now, before in (("theta", theta, self.theta0), ("x", passes.X[0], x), ("y", passes.Y[0], y)):
                if not np.array_equal(now, before):
                    raise ModelError(f"{label} must not change {name} in place: it belongs to the caller")
            if not np.isfinite(value).all():
                where = "" if label == "loss" else f", component {self._name(int(np.argmin(np.isfinite(value))))}"
                raise ModelError(
                    f"{label} is not finite at the start and sample 0{where}; theta0= gives another start, got "
                    f"{_check.show(self.theta0 if self.dim > 4 else self.theta0.tolist())}"
                )

    def _compared(self, X: np.ndarray, Y: np.ndarray, theta: np.ndarray) -> GradientReport:
        passes = FunctionPasses(self, X, Y)
        report = None
        for i in sorted({0, passes.n // 2, passes.n - 1}):
            g = passes.gradient(theta.copy(), i)
            report = check_gradient(lambda at, i=i: passes.loss(at, i), g, theta, i, self._name)  # type: ignore[misc]
            if not report:
                break
        assert report is not None
        return report

    def _name(self, k: int) -> str:
        """W[1,0] for a component of θ."""
        for name, at in self.places().items():
            if at.start <= k < at.stop:
                index = np.unravel_index(k - at.start, self.shapes[name]) if self.shapes[name] else ()
                return f"{name}[{','.join(map(str, index))}]" if index else name
        raise IndexError(k)


def _shapes(dim: Any, shapes: Any) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the arrays of θ."""
    if (dim is None) == (shapes is None):
        raise ArgumentError(f"give dim or shapes, one of them, got dim={dim!r} and shapes={shapes!r}")
    if shapes is None:
        return {"theta": (_check.count("dim", dim),)}
    if not isinstance(shapes, Mapping) or not shapes:
        raise ArgumentError(f"shapes must map names to shapes, such as {{'W': (3, 2)}}, got {_check.show(shapes)}")
    found = {}
    for name, shape in shapes.items():
        label = f"shapes[{name!r}]"
        if not isinstance(name, str) or not isinstance(shape, (tuple, list)):
            raise ArgumentError(f"{label} must be a name and a tuple of integers, got {_check.show(shape)}")
        found[name] = tuple(_check.count(label, size) for size in shape)
    return found
