"""The protocol of a model: what SGD, its SDE and the charges ask of it. A later model is its kernels and a short class.

Kernels of a model (cached, at module level, in a file that is imported when they are first needed). θ is (d,), `q`
holds the model's numbers and q[0] is always N; `data` are its arrays, raveled, never copied per step; `work` scratch.

WEIGHTED(out[d], theta[d], c[N], q, data, work)     out = Σ_i c_i ∇ℓ_i: one pass over all samples
SAMPLE(out[d], theta[d], i, q, data, work)          out = ∇ℓ_i
LOSSES(out[N], theta[d], q, data, work)             out_i = ℓ_i
INCREMENT (`sgdsde._abi`), p = [γ, s, *q]           the SDE's, for the per-sample factor: -Σ_i c_i ∇ℓ_i - 2γhθ with
                                                    c_i = h/N - s·(v_i - v̄)/√N, s = √(2σ²ρ); v without rows: no noise
CORRECTION, p likewise, or None                     (σ²ρ/2)∇Tr Σ = (s²/2)(1/N)Σ_i H_i(g_i - ḡ)
STEP, p likewise                                    discrete SGD in place: θ' = (1 - 2hγ)θ - h·(batch mean of ∇ℓ_i),
                                                    h = learning rate, aux (S, B) the indices of the batch
TRACK, p = [γ, *q, *numbers of the generator]       the charge law, the rows of `charge_rows`

Second derivatives and norms, where a model has kernels for them (else they come from differences, or from gradients of
single samples):

HESSIAN(out[d], theta[d], v[d], c[N], q, data, work)   out = Σ_i c_i H_i v, H_i = ∇²ℓ_i
LOSSES, as `traces`                                    out_i = Tr H_i
LOSSES, as `norms`                                     out_i = ‖∇ℓ_i‖²
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import types

from sgdsde import _check
from sgdsde._abi import INITIAL, VECTOR
from sgdsde._errors import ArgumentError, ModelError
from sgdsde.models.naming import Named

__all__ = ["HESSIAN", "LOSSES", "SAMPLE", "WEIGHTED", "Compiled", "Model", "Samples"]

WEIGHTED = types.void(VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR)
SAMPLE = types.void(VECTOR, VECTOR, types.int64, VECTOR, VECTOR, VECTOR)
LOSSES = types.void(VECTOR, VECTOR, VECTOR, VECTOR, VECTOR)
HESSIAN = types.void(VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR)

SAMPLES_AT_ONCE = 256
"""Gradients that streaming functions hold at a time, where they are short."""
NUMBERS_AT_ONCE = 2**22
"""Numbers that the gradients held at a time may have together: 32 MiB."""

DIFFERENCE = float(np.finfo(float).eps) ** (1 / 3)
"""Step of a central difference of gradients, relative to 1 + ‖θ‖."""


class Samples(NamedTuple):
    """Data as a model reads them."""

    X: Any
    """(N, d_x), a view of `data`; a population where there are no samples."""
    Y: Any
    """(N, d_y) or (N,), a view of `data`; None for a population."""
    n: int
    """N; 0 for a population."""
    numbers: np.ndarray
    """q of the kernels; q[0] = N."""
    data: np.ndarray
    """Raveled arrays of the kernels."""


class Compiled(NamedTuple):
    """The kernels of a model, or of one factor of it (signatures in this module and in `sgdsde._abi`)."""

    weighted: Any
    sample: Any
    losses: Any
    increment: Any
    correction: Any | None
    step: Any
    hessian: Any | None = None
    traces: Any | None = None
    norms: Any | None = None


class Model:
    """Base of models: everything that follows from the kernels, in NumPy, one θ at a time, a few samples at a time.

    A model sets `dim`, `shapes`, `block`, and writes `samples`, `compiled`, `work`; `symmetries`, `charge_track`,
    `step_size` and `factors` where it has them. Models hold numbers only: they are pickled as they are.
    """

    dim: int
    """d, the number of components of θ."""
    shapes: dict[str, tuple[int, ...]]
    """Name -> shape of the arrays of which θ is made, in order, each raveled in C order."""
    block: int | None = None
    """Paths side by side that suit the kernels (1: each path has contiguous state)."""
    factors: tuple[str, ...] = ("per-sample",)
    """Factors of Σ of its own, by name, the default first."""

    # --- what a model writes ------------------------------------------------------------------------------------------

    def samples(self, X: Any, Y: Any) -> Samples:
        """Check the data, and lay them out as the kernels read them."""
        raise NotImplementedError

    def compiled(self, factor: str | None = None) -> Compiled:
        """The kernels, the increment and correction those of a factor (imported and compiled at the first call)."""
        raise NotImplementedError

    def noise(self, factor: str, samples: Samples) -> tuple[int, str]:
        """How many Brownian motions a factor of its own has, and of what kind ("general", "scalar", …)."""
        return samples.n, "general"

    def work(self, n: int) -> tuple[int, int]:
        """Doubles of scratch, (fixed, per path), that suffice for each kernel on passes over n samples at once."""
        raise NotImplementedError

    def symmetries(self) -> Named[Any]:
        """Name -> `Generator` or `Affine`, made when looked up; `.charged()` has those with a charge θᵀAθ alone."""
        return Named({})

    def charge_track(self, generator: Any, gamma: float, X: Any, Y: Any) -> Any:
        """The TRACK kernel of the charge law as a Watcher; None where the generator has no structure that it knows."""
        return None

    def step_size(self, problem: Any) -> Any:
        """How far a step of the SDE may go: an OBSERVE kernel of one row as a Watcher, for `step_size="auto"`.

        The row is δ in (0, 1], and a step is δ·dt long. None where the model has no rule.
        """
        return None

    def charge_traces(self, generators: Sequence[Any], X: Any, Y: Any) -> Any:
        """A TRACK kernel with a row Σ h·Tr[ΣA] for each generator as a Watcher; None where it has none for all of them.

        For what needs the traces of several generators and no more: they may share one pass over the samples.
        """
        return None

    def identity(self, samples: Samples) -> tuple[np.ndarray, ...]:
        """What a checkpoint knows kernels and data by: numbers that are the same in another process."""
        return samples.numbers, samples.data

    # --- θ ------------------------------------------------------------------------------------------------------------

    def places(self) -> dict[str, slice]:
        """Name -> where that array stands in θ."""
        found, start = {}, 0
        for name, shape in self.shapes.items():
            size = int(np.prod(shape))
            found[name] = slice(start, start + size)
            start += size
        return found

    def unflatten(self, theta: Any) -> dict[str, np.ndarray]:
        """The arrays of θ by name: θ of shape (..., d) gives arrays (..., *shape), as views where θ allows."""
        theta = self.check_theta(theta)
        return {k: theta[..., at].reshape(*theta.shape[:-1], *self.shapes[k]) for k, at in self.places().items()}

    def flatten(self, **arrays: Any) -> np.ndarray:
        """θ (d,) from its arrays by name: the inverse of `unflatten`."""
        if set(arrays) != set(self.shapes):
            raise ArgumentError(f"arrays must be named {', '.join(self.shapes)}, got {', '.join(arrays) or 'none'}")
        return np.concatenate([_check.array(k, arrays[k], shape).ravel() for k, shape in self.shapes.items()])

    def check_theta(self, theta: Any, *, one: bool = False) -> np.ndarray:
        """θ as float64 of shape (..., d), or (d,) with `one`; it need not be finite."""
        shape = (self.dim,) if one else (*(None for _ in np.shape(theta)[:-1]), self.dim)
        return _check.array("theta", theta, shape, finite=False)

    def init(self, rng: Any = None, scale: float = 1.0) -> np.ndarray:
        """A start: every entry of an array of shape (..., n) is N(0, scale²/n), n its fan-in.

        Parameters
        ----------
        rng : None, int, SeedSequence or Generator
            An int in [0, 2**64) is the key and gives the same θ always; otherwise a key is drawn.
        scale : float
            Multiplies the standard deviation; 0 gives zeros.

        Returns
        -------
        ndarray of shape (d,)
        """
        from sgdsde.random.stream import key_from, normals
        from sgdsde.run.memory import refuse_more_than_half

        refuse_more_than_half(16.0 * self.dim, f"theta of {self.dim:.4g} numbers", ["a smaller model"])
        scale = _check.number("scale", scale, least=0.0)
        theta = normals(key_from(rng), 0, purpose=INITIAL, count=self.dim)
        for name, at in self.places().items():
            theta[at] *= scale / np.sqrt(self.fan_in(name))
        return theta

    def fan_in(self, name: str) -> int:
        """How many numbers feed one output of that array."""
        return self.shapes[name][-1]

    # --- gradients ----------------------------------------------------------------------------------------------------

    def losses(self, theta: Any, samples: Samples) -> np.ndarray:
        """ℓ_i(θ), shape (N,)."""
        theta = self.check_theta(theta, one=True)
        self._needs_samples(samples, "losses")
        return self._for_each(self.compiled().losses, theta, samples)

    def loss(self, theta: Any, samples: Samples) -> np.ndarray:
        """L(θ) = mean of ℓ_i, without weight decay, shape (...) for θ of shape (..., d)."""
        return self._each(theta, lambda one: self.losses(one, samples).mean(), ())

    def weighted_gradient(self, theta: Any, c: Any, samples: Samples) -> np.ndarray:
        """Σ_i c_i ∇ℓ_i(θ), shape (d,), for c of shape (N,): one pass over all samples."""
        theta = self.check_theta(theta, one=True)
        self._needs_samples(samples, "a weighted gradient")
        c = _check.array("c", c, (samples.n,), finite=False)
        out = np.empty(self.dim)
        self.compiled().weighted(out, theta, c, samples.numbers, samples.data, self._scratch(samples))
        return out

    def gradient(self, theta: Any, samples: Samples) -> np.ndarray:
        """∇L(θ), without weight decay, shape (..., d)."""
        c = np.full(samples.n, 1.0 / max(samples.n, 1))
        return self._each(theta, lambda one: self.weighted_gradient(one, c, samples), (self.dim,))

    def per_sample_gradients(self, theta: Any, samples: Samples, start: int = 0, stop: int | None = None) -> np.ndarray:
        """∇ℓ_i(θ) of the samples start..stop-1, shape (stop - start, d)."""
        from sgdsde.models.per_sample import sample_rows

        theta = self.check_theta(theta, one=True)
        self._needs_samples(samples, "gradients of single samples")
        out = np.empty(((samples.n if stop is None else stop) - start, self.dim))
        work = self._scratch(samples)
        sample_rows(out, self.compiled().sample, theta, start, samples.numbers, samples.data, work)
        return out

    def gradient_moments(
        self, theta: Any, samples: Samples, transform: Callable[[np.ndarray], np.ndarray] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean (d,) and variance (d,) over the samples of the gradient in another basis, a few samples at a time.

        `transform` is linear and maps rows (n, d) to rows (n, d); None is the identity. The variance is Σ's diagonal in
        that basis.
        """
        turn = self._turn(transform)
        mean = self.gradient(self.check_theta(theta, one=True), samples)
        var = np.zeros(self.dim)
        for g in self._centred(theta, mean, samples):
            var += np.square(turn(g)).sum(axis=0)
        return turn(mean[None])[0], var / samples.n

    def gradient_norms(self, theta: Any, samples: Samples) -> np.ndarray:
        """‖∇ℓ_i(θ)‖², shape (N,); their mean less ‖∇L‖² is Tr Σ."""
        theta = self.check_theta(theta, one=True)
        self._needs_samples(samples, "norms of gradients")
        kernel = self.compiled().norms
        if kernel is None:
            rows = self._centred(theta, np.zeros(self.dim), samples)
            return np.concatenate([np.square(g).sum(axis=1) for g in rows])
        return self._for_each(kernel, theta, samples)

    def hessian_vector(self, theta: Any, v: Any, samples: Samples, c: Any = None) -> np.ndarray:
        """Σ_i c_i ∇²ℓ_i(θ) v, shape (d,); ∇²L v without c.

        Parameters
        ----------
        theta, v : array_like of shape (d,)
        samples : Samples
        c : array_like of shape (N,), optional
            Weights of the samples, 1/N each when not given.

        Notes
        -----
        Two passes over the samples where the model has a kernel. Elsewhere the central difference of two weighted
        gradients, θ moved by eps^(1/3)(1 + ‖θ‖) each way: its relative error is some 1e-10.
        """
        theta = self.check_theta(theta, one=True)
        v = _check.array("v", v, (self.dim,), finite=False)
        self._needs_samples(samples, "second derivatives")
        c = np.full(samples.n, 1.0 / samples.n) if c is None else _check.array("c", c, (samples.n,), finite=False)
        kernel = self.compiled().hessian
        if kernel is None:
            length = float(np.linalg.norm(v))
            if length == 0.0:
                return np.zeros(self.dim)
            step = DIFFERENCE * (1.0 + float(np.linalg.norm(theta))) / length
            ahead, behind = (self.weighted_gradient(theta + s * step * v, c, samples) for s in (1.0, -1.0))
            return (ahead - behind) / (2.0 * step)
        out = np.empty(self.dim)
        kernel(out, theta, v, c, samples.numbers, samples.data, self._scratch(samples))
        return out

    def hessian_trace(self, theta: Any, samples: Samples) -> float:
        """Tr ∇²L(θ): exact where the model has a kernel, elsewhere from d products of `hessian_vector`."""
        theta = self.check_theta(theta, one=True)
        self._needs_samples(samples, "second derivatives")
        kernel = self.compiled().traces
        if kernel is None:
            units = np.eye(1, self.dim).ravel()
            return float(sum(self.hessian_vector(theta, np.roll(units, k), samples)[k] for k in range(self.dim)))
        return float(self._for_each(kernel, theta, samples).mean())

    def covariance(self, theta: Any, samples: Samples, block: str | None = None) -> np.ndarray:
        """Σ = (1/N)Σ_i (g_i - ḡ)(g_i - ḡ)ᵀ, (d, d), or its diagonal block for the array named `block`."""
        at = slice(None) if block is None else self.places()[_check.choice("block", block, self.shapes)]
        mean = self.gradient(self.check_theta(theta, one=True), samples)
        total: Any = 0.0
        for g in self._centred(theta, mean, samples):
            total = total + g[:, at].T @ g[:, at]
        return total / samples.n

    def factor(self, theta: Any, samples: Samples, name: str | None = None) -> np.ndarray:
        """G with GGᵀ = Σ, unscaled: for "per-sample" (d, N), column i = (g_i - ḡ)/√N. Holds all of it: d·N numbers."""
        _check.choice("factor", self.factors[0] if name is None else name, self.factors)
        g = self.per_sample_gradients(theta, samples)
        g -= self.gradient(theta, samples)
        return g.T / np.sqrt(samples.n)

    def _centred(self, theta: Any, mean: np.ndarray, samples: Samples) -> Any:
        rows = max(1, min(SAMPLES_AT_ONCE, NUMBERS_AT_ONCE // self.dim))
        for start in range(0, samples.n, rows):
            yield self.per_sample_gradients(theta, samples, start, min(samples.n, start + rows)) - mean

    def _each(self, theta: Any, function: Callable[[np.ndarray], Any], shape: tuple[int, ...]) -> Any:
        theta = self.check_theta(theta)
        rows = [function(one) for one in theta.reshape(-1, self.dim)]
        out = np.array(rows, dtype=np.float64).reshape((*theta.shape[:-1], *shape))
        return float(out) if out.ndim == 0 else out

    def _turn(self, transform: Any) -> Callable[[np.ndarray], np.ndarray]:
        """`transform`, and a look at the shape of what it returns."""
        if transform is None:
            return lambda g: g
        if not callable(transform):
            raise ArgumentError(f"transform must be a function of rows (n, d), got {_check.show(transform)}")

        def turned(g: np.ndarray) -> np.ndarray:
            return _check.array("transform's result", transform(g), g.shape, finite=False)

        return turned

    def _for_each(self, kernel: Any, theta: np.ndarray, samples: Samples) -> np.ndarray:
        """One number for each sample, by a kernel of signature LOSSES."""
        out = np.empty(samples.n)
        kernel(out, theta, samples.numbers, samples.data, self._scratch(samples))
        return out

    def _scratch(self, samples: Samples) -> np.ndarray:
        return np.empty(sum(self.work(samples.n)))

    def _needs_samples(self, samples: Samples, what: str) -> None:
        if samples.n == 0:
            raise ModelError(f"{what} need samples X, Y; {samples.X!r} is a law of the data, not a list of samples")
