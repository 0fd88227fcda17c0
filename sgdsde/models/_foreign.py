"""What models made of other people's functions share: their data, their kernels, how they travel to other processes."""

from __future__ import annotations

import hashlib
import types as pytypes
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numba.cloudpickle
import numpy as np

from sgdsde import _check
from sgdsde._abi import INITIAL
from sgdsde._errors import ArgumentError, ModelError, ShapeError
from sgdsde.algebra import Affine, Generator
from sgdsde.equation.packing import pack
from sgdsde.models._foreign_passes import Passes
from sgdsde.models.model import NUMBERS_AT_ONCE, SAMPLES_AT_ONCE, Compiled, Model, Samples
from sgdsde.models.naming import Named

__all__ = ["Foreign", "code_token", "read_array", "read_symmetries", "relative_close"]


class Foreign(Model):
    """Base of `from_functions`, `from_torch`, `from_jax`: a `Model` whose losses and gradients are not ours.

    A subclass writes `bind`, and `token`. It is pickled by value, functions and modules too.
    """

    block = 1
    _generators: dict[str, Any]
    _transient: tuple[str, ...] = ("_made",)
    """Attributes that do not travel to another process."""
    _made: Any = None
    """Weak references to the arrays of the samples that were made."""

    # --- what a subclass writes ---------------------------------------------------------------------------------------

    def bind(self, X: np.ndarray, Y: np.ndarray, p: np.ndarray, data: np.ndarray) -> np.ndarray:
        """The numbers q of the kernels for these samples, checked; they own what the kernels need.

        p and data are X, Y and `held` as `packing` lays them out. X and Y are views of data, not to be written to.
        """
        raise NotImplementedError

    def token(self) -> bytes:
        """What the model computes, as bytes that are the same in another process, where that can be said."""
        raise NotImplementedError

    def held(self) -> tuple[Any, ...]:
        """What the kernels read beside X and Y."""
        return ()

    # --- the protocol -------------------------------------------------------------------------------------------------

    def samples(self, X: Any, Y: Any) -> Samples:
        """X and Y of any number of axes, the first over the N samples; float64, or int64 where they hold integers."""
        if Y is None:
            raise ModelError(f"{self!r} needs samples X and Y, got X alone ({_check.show(X)})")
        for x, y, numbers, data in self._alive():
            if x is X and y is Y:  # of a problem of other numbers, `replace`
                return Samples(x, y, x.shape[0], numbers, data)
        X, Y = read_array("X", X), read_array("Y", Y)
        if X.shape[0] != Y.shape[0] or X.shape[0] == 0:
            wanted = "at least one sample" if X.shape[0] == Y.shape[0] else "the same number of samples"
            raise ShapeError(f"X and Y must hold {wanted}, got X {X.shape} and Y {Y.shape}")
        p, data = pack((X, Y, *self.held()))
        cut = X.size + Y.size
        x = data[: X.size].view(X.dtype).reshape(X.shape)
        y = data[X.size : cut].view(Y.dtype).reshape(Y.shape)
        numbers = self.bind(x, y, p, data)
        x.flags.writeable = y.flags.writeable = False
        self._made = [*(self._made or ()), tuple(map(weakref.ref, (x, y, numbers, data)))]
        return Samples(x, y, X.shape[0], numbers, data)

    def _alive(self) -> list[tuple[Any, ...]]:
        """X, Y, numbers and data of the samples that were made before and are still there."""
        found = [(tuple(one() for one in refs), refs) for refs in self._made or ()]
        found = [(arrays, refs) for arrays, refs in found if all(array is not None for array in arrays)]
        self._made = [refs for _, refs in found]
        return [arrays for arrays, _ in found]

    def compiled(self, factor: str | None = None) -> Compiled:
        """The kernels, the same for all models of other people."""
        from sgdsde.models import _foreign_kernels as k

        return Compiled(k.weighted, k.sample, k.losses, k.increment, k.correction, k.step, k.hessian)

    def work(self, n: int) -> tuple[int, int]:
        """Weights of n samples, and a few gradients."""
        return n + 8 * self.dim + 8, 0

    def passes(self, samples: Samples) -> Passes | None:
        """What computes in Python for these samples; None where the functions are compiled."""
        from sgdsde.models._foreign_passes import _registered

        return _registered.get(int(samples.numbers[1]))

    def per_sample_gradients(self, theta: Any, samples: Samples, start: int = 0, stop: int | None = None) -> np.ndarray:
        """∇ℓ_i(θ) of the samples start..stop-1, shape (stop - start, d)."""
        passes = self.passes(samples)
        theta = self.check_theta(theta, one=True)
        if passes is None or not np.isfinite(theta).all():
            return super().per_sample_gradients(theta, samples, start, stop)
        stop = samples.n if stop is None else stop
        step = max(1, min(SAMPLES_AT_ONCE, NUMBERS_AT_ONCE // self.dim))
        out = np.empty((stop - start, self.dim))
        for first in range(start, stop, step):
            last = min(stop, first + step)
            out[first - start : last - start] = passes.rows(theta, first, last)
        return out

    def identity(self, samples: Samples) -> tuple[np.ndarray, ...]:
        """See `Model.identity`; the numbers of the kernels are of this process alone."""
        digest = hashlib.sha256(self.token() + repr(self.shapes).encode()).digest()
        return np.frombuffer(digest, np.uint8), samples.data

    def fan_in(self, name: str) -> int:
        """How many numbers feed one output of that array: the length of its last axis."""
        return self.shapes[name][-1] if self.shapes[name] else 1

    def symmetries(self) -> Named[Any]:
        """The generators that were given, by name. `check_symmetry` tests them."""
        return Named({name: partial(self._generators.__getitem__, name) for name in self._generators})

    def _drawn(self, rng: Any, scale: float, own: np.ndarray, fan_in: Callable[[tuple[int, ...]], int]) -> np.ndarray:
        """A start: arrays of two and more axes from N(0, scale²/fan-in), others as they are in `own`."""
        from sgdsde.random.stream import key_from, normals

        scale = _check.number("scale", scale, least=0.0)
        theta = normals(key_from(rng), 0, purpose=INITIAL, count=self.dim)
        for name, at in self.places().items():
            shape = self.shapes[name]
            if len(shape) < 2:
                theta[at] = own[at]
            else:
                theta[at] *= scale / np.sqrt(max(1, fan_in(shape)))
        return theta

    def __reduce__(self) -> Any:
        state = {name: value for name, value in vars(self).items() if name not in self._transient}
        return _restore, (type(self), numba.cloudpickle.dumps(state))


def _restore(kind: type[Foreign], content: bytes) -> Foreign:
    model = kind.__new__(kind)
    vars(model).update(numba.cloudpickle.loads(content))
    for name in kind._transient:
        setattr(model, name, None)
    return model


def read_array(name: str, value: Any) -> np.ndarray:
    """An array of one and more axes: integers stay integers (class numbers, tokens), anything else becomes float64."""
    clean = _check.array(name, value)
    if clean.ndim == 0:
        raise ShapeError(f"{name} must have a first axis over the samples, got the single number {clean}")
    raw = np.asarray(value)
    return np.array(raw, dtype=np.int64, order="C") if raw.dtype.kind in "iu" else clean


def read_symmetries(symmetries: Any, dim: int) -> dict[str, Any]:
    """A mapping of names to generators (Generator, Affine), or to matrices (d, d)."""
    if symmetries is None:
        return {}
    if not isinstance(symmetries, Mapping):
        raise ArgumentError(f"symmetries must map names to Generators, got {_check.show(symmetries)}")
    found = {}
    for name, value in symmetries.items():
        label = f"symmetries[{name!r}]"
        if not isinstance(value, (Generator, Affine)):
            value = Generator.from_matrix(_check.array(label, value, (dim, dim)), name=str(name))
        if value.dim != dim:
            raise ArgumentError(f"{label} must act on the {dim} parameters of the model, got dim {value.dim}")
        found[str(name)] = value
    return found


def relative_close(found: np.ndarray, wanted: np.ndarray, tolerance: float) -> bool:
    """Whether arrays differ by rounding only, relative to the largest entry (or to one, if that is smaller)."""
    size = max(1.0, float(np.abs(wanted).max(initial=0.0)))
    return bool(np.abs(found - wanted).max(initial=0.0) <= tolerance * size)


def code_token(thing: Any, depth: int = 6) -> bytes:
    """A function's code and the plain values that it reads, as bytes that are the same in another process."""
    thing = getattr(thing, "__wrapped__", getattr(thing, "py_func", thing))
    if isinstance(thing, pytypes.MethodType):
        thing = thing.__func__
    if isinstance(thing, pytypes.FunctionType) and depth > 0:
        cells = [cell.cell_contents for cell in thing.__closure__ or () if cell != pytypes.CellType()]
        globals_ = [thing.__globals__[n] for n in thing.__code__.co_names if n in thing.__globals__]
        read = [one for one in (*cells, *globals_, *(thing.__defaults__ or ())) if not isinstance(one, type)]
        return b"|".join([_code(thing.__code__), *(code_token(one, depth - 1) for one in read)])
    if isinstance(thing, (bool, int, float, complex, str, bytes, type(None), tuple, list, np.generic)):
        return repr(thing).encode()
    if isinstance(thing, np.ndarray):
        return hashlib.sha256(np.ascontiguousarray(thing).tobytes()).digest()
    return type(thing).__qualname__.encode()


def _code(code: pytypes.CodeType) -> bytes:
    constants = [_code(one) if isinstance(one, pytypes.CodeType) else repr(one).encode() for one in code.co_consts]
    return b"|".join([code.co_code, repr(code.co_names).encode(), *constants])
