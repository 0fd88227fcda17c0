"""Passes of a JAX function over samples, each compiled by XLA for the sizes that it meets.

Everything runs in double precision, whatever the program around it has set: JAX keeps that setting by thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sgdsde.models._foreign_passes import Passes
from sgdsde.models.model import NUMBERS_AT_ONCE

__all__ = ["Compiled", "JaxPasses", "double", "leaves_of"]

FEW = 64
"""Samples whose second derivatives are held at once."""


def double() -> Any:
    """A context of double precision, of this thread."""
    return jax.enable_x64(True)


def leaves_of(params: Any) -> tuple[dict[str, Any], Any]:
    """Name -> leaf of a pytree, "layers.0.w", and its structure."""
    found, tree = jax.tree_util.tree_flatten_with_path(params)
    return {".".join(map(_word, path)) or "theta": leaf for path, leaf in found}, tree


def _word(key: Any) -> str:
    """One step of a path: a key of a dict, an index, an attribute."""
    for attribute in ("key", "idx", "name"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)


class Compiled:
    """The functions of one model of a flat θ, compiled when they are first called."""

    def __init__(self, loss: Callable[[Any, Any, Any], Any], tree: Any, shapes: dict[str, tuple[int, ...]]) -> None:
        places, start = [], 0
        for shape in shapes.values():
            size = int(np.prod(shape))
            places.append((slice(start, start + size), shape))
            start += size

        def one(theta: Any, x: Any, y: Any) -> Any:
            leaves = [theta[at].reshape(shape) for at, shape in places]
            return loss(jax.tree_util.tree_unflatten(tree, leaves), x, y)

        each = jax.vmap(one, (None, 0, 0))
        gradient = jax.grad(one)

        def weighted(theta: Any, c: Any, X: Any, Y: Any) -> Any:
            return jax.grad(lambda at: jnp.dot(c, each(at, X, Y)))(theta)

        def batch(theta: Any, index: Any, X: Any, Y: Any) -> Any:
            return jax.grad(lambda at: jnp.mean(each(at, X[index], Y[index])))(theta)

        def hessian(theta: Any, v: Any, c: Any, X: Any, Y: Any) -> Any:
            return jax.jvp(lambda at: weighted(at, c, X, Y), (theta,), (v,))[1]

        def bend(theta: Any, mean: Any, X: Any, Y: Any) -> Any:
            def product(x: Any, y: Any) -> Any:
                g = gradient(theta, x, y)
                return jax.jvp(lambda at: gradient(at, x, y), (theta,), (g - mean,))[1]

            return jnp.sum(jax.vmap(product)(X, Y), axis=0)

        self.one = one
        self.losses = jax.jit(each)
        self.weighted, self.batch = jax.jit(weighted), jax.jit(batch)
        self.rows = jax.jit(jax.vmap(gradient, (None, 0, 0)))
        self.hessian, self.bend = jax.jit(hessian), jax.jit(bend)


class JaxPasses(Passes):
    """A model made by `from_jax` and its samples."""

    def __init__(self, model: Any, X: np.ndarray, Y: np.ndarray) -> None:
        super().__init__(X.shape[0], model.dim)
        self.compiled = model.compiled_functions
        with double():
            self.X, self.Y = jnp.array(X), jnp.array(Y)

    def losses(self, theta: np.ndarray) -> np.ndarray:
        with double():
            return np.asarray(self.compiled.losses(theta.copy(), self.X, self.Y))

    def weighted(self, theta: np.ndarray, c: np.ndarray) -> np.ndarray:
        with double():
            return np.asarray(self.compiled.weighted(theta.copy(), c.copy(), self.X, self.Y))

    def batch(self, theta: np.ndarray, index: np.ndarray) -> np.ndarray:
        with double():
            return np.asarray(self.compiled.batch(theta.copy(), index, self.X, self.Y))

    def rows(self, theta: np.ndarray, start: int, stop: int) -> np.ndarray:
        with double():
            return np.asarray(self.compiled.rows(theta.copy(), self.X[start:stop], self.Y[start:stop]))

    def hessian(self, theta: np.ndarray, v: np.ndarray, c: np.ndarray) -> np.ndarray:
        """By a forward derivative of the backward pass."""
        with double():
            return np.asarray(self.compiled.hessian(theta.copy(), v.copy(), c.copy(), self.X, self.Y))

    def bend(self, theta: np.ndarray) -> np.ndarray:
        """Exact, a few samples at a time."""
        mean, total = self.weighted(theta, np.full(self.n, 1.0 / self.n)), np.zeros(self.dim)
        rows = max(1, min(FEW, NUMBERS_AT_ONCE // self.dim))
        with double():
            for start in range(0, self.n, rows):
                at = slice(start, min(self.n, start + rows))
                total += np.asarray(self.compiled.bend(theta.copy(), mean, self.X[at], self.Y[at]))
        return total / self.n
