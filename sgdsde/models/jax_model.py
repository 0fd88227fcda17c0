"""`from_jax`: a model from a JAX function of one sample and a pytree of parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ModelError, ShapeError
from sgdsde.models._foreign import Foreign, code_token, read_symmetries, relative_close

__all__ = ["JaxModel", "from_jax"]


def from_jax(
    function: Callable[..., Any],
    params: Any,
    *,
    loss: Callable[[Any, Any], Any] | None = None,
    symmetries: Mapping[str, Any] | None = None,
) -> JaxModel:
    """A model from a JAX function: its SGD, its SDE, its covariance and its charges.

    Parameters
    ----------
    function : callable
        Of one sample, in operations of JAX: function(params, x, y) -> ℓ, a number, with x = X[i] and y = Y[i]; or, with
        `loss`, function(params, x) -> the outputs.
    params : pytree of arrays
        A start, which `theta0` keeps; θ are its leaves, in JAX's order, named by their paths: {"w": …} is "w", a list's
        second entry "1", [{"w": …}] "0.w".
    loss : callable, optional
        loss(outputs, y) -> ℓ of one sample.
    symmetries : mapping, optional
        Name -> `Generator` or matrix (d, d), kept for `model.symmetries()`; `check_symmetry` tests them.

    Returns
    -------
    JaxModel
        `params_at(theta)` gives θ back as a pytree.

    Raises
    ------
    ModelError
        For parameters that are not real; from `SGD` for a loss that is random or not finite, or in single precision.
    ShapeError
        From `SGD`: the loss of one sample is not one number.

    Notes
    -----
    X and Y become float64, integers int64 (class numbers, tokens). All calls are in double precision, whether or not
    `jax_enable_x64` is set outside. The function sees one sample, so nothing can depend on the batch; `jax.vmap` makes
    it many. A step of the SDE is one backward pass over all samples, with weights of both signs; a step of SGD one over
    its batch. XLA compiles each pass when it first meets its sizes. Products with second derivatives are exact. What
    the function raises reaches the caller. The last bits depend on how XLA was told to run, not on the threads of
    `solve`.

    Examples
    --------
    >>> import sgdsde as sg
    >>> import jax.numpy as jnp                                                                # doctest: +SKIP
    >>> net = lambda p, x: p["v"] @ jnp.tanh(p["w"] @ x)                                       # doctest: +SKIP
    >>> params = {"v": jnp.ones((2, 4)), "w": jnp.ones((4, 3))}                                # doctest: +SKIP
    >>> model = sg.models.from_jax(net, params, loss=lambda o, y: jnp.sum((o - y) ** 2))       # doctest: +SKIP
    >>> model.shapes                                                                           # doctest: +SKIP
    {'v': (2, 4), 'w': (4, 3)}
    """
    return JaxModel(function, params, loss, symmetries)


class JaxModel(Foreign):
    """What `from_jax` returns: a `Model`."""

    _transient = ("_made", "_functions")

    def __init__(
        self,
        function: Callable[..., Any],
        params: Any,
        loss: Callable[[Any, Any], Any] | None = None,
        symmetries: Mapping[str, Any] | None = None,
    ) -> None:
        import jax

        from sgdsde.models._foreign_jax import leaves_of

        if not callable(function):
            raise ArgumentError(f"function must be a function of (params, x, y), got {_check.show(function)}")
        if loss is not None and not callable(loss):
            raise ArgumentError(f"loss must be a function of (outputs, y), got {_check.show(loss)}")
        self.function, self.loss_function = function, loss
        named, _ = leaves_of(params)
        arrays = {}
        for name, leaf in named.items():
            raw = np.asarray(leaf)
            if raw.dtype.kind != "f" and raw.dtype.name != "bfloat16":
                raise ModelError(f"params[{name!r}] must hold real floats, got dtype {raw.dtype}")
            arrays[name] = raw.astype(np.float64)
        if len(arrays) < len(jax.tree_util.tree_leaves(params)):
            raise ModelError(f"params must have leaves of different names, got {', '.join(named)} more than once")
        if not arrays:
            raise ModelError("params must hold at least one array, got an empty tree")
        self.params = jax.tree_util.tree_map(lambda leaf: np.asarray(leaf).astype(np.float64), params)
        self.shapes = {name: array.shape for name, array in arrays.items()}
        self.dim = sum(array.size for array in arrays.values())
        self.theta0 = np.concatenate([array.ravel() for array in arrays.values()])
        self._generators = read_symmetries(symmetries, self.dim)
        self._functions: Any = None

    def __repr__(self) -> str:
        return f"from_jax({getattr(self.function, '__name__', type(self.function).__name__)}, dim={self.dim})"

    @property
    def compiled_functions(self) -> Any:
        """The passes, compiled by XLA when they are first called."""
        if self._functions is None:
            from sgdsde.models._foreign_jax import Compiled, leaves_of

            self._functions = Compiled(self._loss, leaves_of(self.params)[1], self.shapes)
        return self._functions

    def _loss(self, params: Any, x: Any, y: Any) -> Any:
        if self.loss_function is None:
            return self.function(params, x, y)
        return self.loss_function(self.function(params, x), y)

    def params_at(self, theta: Any) -> Any:
        """θ (d,) as the pytree of parameters, of NumPy arrays."""
        import jax

        from sgdsde.models._foreign_jax import leaves_of

        arrays = self.unflatten(self.check_theta(theta, one=True))
        return jax.tree_util.tree_unflatten(leaves_of(self.params)[1], list(arrays.values()))

    def init(self, rng: Any = None, scale: float = 1.0) -> np.ndarray:
        """A start: arrays of two and more axes from N(0, scale²/fan-in), what has fewer as in `params`.

        The fan-in is the length of all axes but the last, as layers of JAX have it.
        """
        return self._drawn(rng, scale, self.theta0, lambda shape: int(np.prod(shape[:-1])))

    def fan_in(self, name: str) -> int:
        """How many numbers feed one output of that array: the product of all axes but the last."""
        return int(np.prod(self.shapes[name][:-1]))

    def token(self) -> bytes:
        """See `Foreign.token`."""
        return code_token(self.function) + code_token(self.loss_function)

    def bind(self, X: np.ndarray, Y: np.ndarray, p: np.ndarray, data: np.ndarray) -> np.ndarray:
        """See `Foreign.bind`."""
        from sgdsde.models._foreign_jax import JaxPasses

        passes = JaxPasses(self, X, Y)
        self._tried(passes)
        return passes.numbers()

    def _tried(self, passes: Any) -> None:
        """One sample: a loss of one number, in double precision, finite, and the same each time."""
        import jax
        import jax.numpy as jnp

        from sgdsde.models._foreign_jax import double

        with double():
            one, start = self.compiled_functions.one, jnp.array(self.theta0)
            x, y = passes.X[0], passes.Y[0]
            shape = jax.eval_shape(one, start, x, y)
            if not hasattr(shape, "shape") or shape.shape != ():
                got = getattr(shape, "shape", _check.show(shape))
                hint = "" if self.loss_function is not None else "; loss= makes a number of what function returns"
                raise ShapeError(f"the loss of one sample must be one number, got {got}{hint}")
            if shape.dtype != jnp.float64:
                raise ModelError(f"the loss must be computed in double precision, got {shape.dtype}")
            values = [float(one(start, x, y)) for _ in range(2)]
            if not np.isfinite(values[0]):
                raise ModelError(f"the loss is not finite at params and sample 0, got {values[0]}")
            # What is random outside of JAX is frozen into the first compilation, and would look like a function of θ.
            if not relative_close(np.array(values[:1]), np.array(values[1:]), 0.0):
                raise ModelError("function must give the same loss each time, but it is random: pass it a fixed key")
