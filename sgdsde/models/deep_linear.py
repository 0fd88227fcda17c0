"""DeepLinear: f(x) = W_D … W_1 x with squared loss. Two layers are a matrix factorisation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ModelError, ShapeError
from sgdsde.algebra import Generator
from sgdsde.models import linear_symmetry
from sgdsde.models.charge_rows import CHARGE_ROWS
from sgdsde.models.model import Compiled, Model, Samples
from sgdsde.models.naming import Named
from sgdsde.models.packing import pack
from sgdsde.run.watching import Watcher

__all__ = ["DeepLinear"]


class DeepLinear(Model):
    """A deep linear network of any depth D >= 1, ℓ_i = scale·‖W_D … W_1 x_i - y_i‖².

    Parameters
    ----------
    dims : sequence of int
        [n_0, …, n_D]: inputs, hidden widths, outputs; W_l has shape (n_l, n_{l-1}).
    scale : float
        Multiplies the loss, which is ‖r‖² summed over the outputs, without ½; `scale=0.5` gives ½‖r‖².

    Notes
    -----
    θ = [W_1, …, W_D], each raveled in C order. Hidden layer l has the symmetry W_l ↦ g W_l, W_{l+1} ↦ W_{l+1} g⁻¹ for
    every invertible g. A step of the SDE is one weighted gradient over all samples in BLAS: per sample
    2Σ_l n_l n_{l-1} + Σ_{l>1} n_l n_{l-1} multiplications, or 2 n_0 n_D where that is less. Its scratch is at most 1024
    samples wide, beside N weights.

    Examples
    --------
    >>> model = DeepLinear([3, 2, 1])
    >>> model
    DeepLinear([3, 2, 1])
    >>> model.dim, model.shapes
    (8, {'W1': (2, 3), 'W2': (1, 2)})
    >>> model.symmetries()["B=I"].eigenvalues
    array([-1., -1., -1., -1., -1., -1.,  1.,  1.])
    """

    block = 1

    def __init__(self, dims: Sequence[int], scale: float = 1.0) -> None:
        if isinstance(dims, (str, bytes)) or not isinstance(dims, (Sequence, np.ndarray)) or len(dims) < 2:
            raise ArgumentError(f"dims must hold at least two widths [inputs, …, outputs], got {_check.show(dims)}")
        self.dims = tuple(_check.count(f"dims[{k}]", n) for k, n in enumerate(dims))
        self.scale = _check.positive("scale", scale)
        self.shapes = {f"W{k}": (n, m) for k, (m, n) in enumerate(pairwise(self.dims), start=1)}
        self.dim = sum(n * m for n, m in self.shapes.values())

    @property
    def depth(self) -> int:
        """D, the number of matrices."""
        return len(self.dims) - 1

    @property
    def _matrices(self) -> list[tuple[int, int]]:
        return [(n, m) for m, n in pairwise(self.dims)]

    def __repr__(self) -> str:
        return f"DeepLinear({list(self.dims)}{'' if self.scale == 1.0 else f', scale={self.scale:g}'})"

    # --- kernels and their arrays -------------------------------------------------------------------------------------

    def samples(self, X: Any, Y: Any) -> Samples:
        """X of shape (N, n_0) and Y of shape (N, n_D), or (N,) for one output."""
        if Y is None:
            raise ModelError(f"{self!r} needs samples X and Y, got X alone ({_check.show(X)})")
        X, Y, data = pack(X, Y, self.dims[0], self.dims[-1])
        n = X.shape[0]
        return Samples(X, Y, n, np.array([n, self.scale, self.depth, *self.dims], dtype=np.float64), data)

    def compiled(self, factor: str | None = None) -> Compiled:
        """The kernels."""
        from sgdsde.models import deep_linear_kernels as gradients
        from sgdsde.models import deep_linear_second as single
        from sgdsde.models import deep_linear_tangent as tangents
        from sgdsde.models.deep_linear_step import step

        first = (gradients.weighted, gradients.sample, gradients.losses, gradients.increment)
        second = (tangents.hessian, single.hessian_traces, single.gradient_norms)
        return Compiled(*first, tangents.correction, step, *second)

    def work(self, n: int) -> tuple[int, int]:
        """Scratch for passes over n samples: bounded for large n but for the weights, n doubles."""
        from sgdsde.models.deep_linear_passes import CHUNK
        from sgdsde.models.deep_linear_step import FEW

        rows = min(n, CHUNK)
        d, n0, n_out, widest, outputs = self.dim, self.dims[0], self.dims[-1], max(self.dims), sum(self.dims[1:])
        largest = max(r * c for r, c in self._matrices)
        gradient = largest + max(rows * outputs, n0 * (outputs + 2 * n_out) + rows * n_out)
        step = 2 * d + rows * (1 + n0 + n_out) + gradient
        tangent = 3 * rows * outputs + rows + max(rows * widest, largest)
        charge = rows * outputs + max(rows * widest, largest)
        few = 2 * FEW * outputs
        single = n + 2 * self.depth + rows * (2 + 2 * outputs) + 2 * n_out * widest
        correction = self.depth + n + 3 * d + max(gradient, tangent)
        if self._is_collapsed(n):
            turned = 3 * n0 * (outputs + n_out) + n0 * n0 + max(rows * n_out, n0 * widest, largest)
            correction = max(correction, self.depth + turned)
        return max(n + 2 * d + gradient, step, correction, n + 4 * d + charge, d + few, single), 0

    def _is_collapsed(self, n: int) -> bool:
        """Whether the kernels take n samples through the product of the matrices: as in `deep_linear_passes`."""
        layers = sum(r * c for r, c in self._matrices)
        upper, n0 = layers - self.dims[0] * self.dims[1], self.dims[0]
        return 2 * n * n0 * self.dims[-1] + 3 * n0 * upper < n * (2 * layers + upper)

    # --- symmetry -----------------------------------------------------------------------------------------------------

    def symmetries(self) -> Named[Generator]:
        """All linear symmetries of the architecture, each made when it is looked up.

        Of each hidden layer every B: "B=I" first, then a basis, "B[i,j]" (symmetric, i <= j, with a charge) and
        "rotation(i,j)" (antisymmetric, i < j, without); with more than one hidden layer "layer1:B=I", … `generator`
        makes any other B.

        Beside a layer of one unit, be it the input, the output or between, there are more. "shear[a](i,j)" moves column
        a of W_l by δW_la = Pu, where W_{l+1} has the one row u, P antisymmetric; "shear[out,a](i,j)" moves row a of
        W_{l+1} where W_l has one column. Between one and one they split into "crossing(i,j)", with the charge
        2(u_iw_j - u_jw_i), and "twist(i,j)", without: with the others so(h, h).
        """
        own = {}
        for layer in range(1, self.depth):
            name = f"{linear_symmetry.layer_label(self.depth, layer)}B=I"
            own[name] = partial(self.generator, np.eye(self.dims[layer]), layer, name)
        families = linear_symmetry.pairs(self.dims, self.generator)
        return Named(own, [*families, *linear_symmetry.shears(self.dims, self.places())])

    def generator(self, B: Any, layer: int = 1, name: str = "") -> Generator:
        """The symmetry W_l ↦ -B W_l, W_{l+1} ↦ W_{l+1} B of hidden layer l.

        Parameters
        ----------
        B : array_like of shape (n_l, n_l)
            Symmetric for a charge C_B = Tr[W_{l+1} B W_{l+1}ᵀ] - Tr[W_lᵀ B W_l]; antisymmetric for a rotation of the
            hidden units.
        layer : int
            l in 1..D-1.
        name : str
            Of the generator.

        Examples
        --------
        >>> model = DeepLinear([1, 2, 1])
        >>> model.generator([[1.0, 0.0], [0.0, 0.0]], name="first unit").quadratic([3.0, 0.0, 2.0, 0.0])
        -5.0
        """
        if self.depth < 2:
            raise ArgumentError("generator needs a hidden layer, and a network of one matrix has none")
        layer = _check.count("layer", layer, most=self.depth - 1)
        n = self.dims[layer]
        B = _check.array("B", B)
        if B.shape != (n, n):
            raise ShapeError(f"B must have shape ({n}, {n}) for hidden layer {layer} of {self!r}, got {B.shape}")
        factors: list[tuple[Any, Any]] = [(None, None)] * self.depth
        factors[layer - 1] = (-B, None)
        factors[layer] = (None, B)
        return Generator.layered(self._matrices, factors, name)

    def charge_track(self, generator: Generator, gamma: float, X: Any, Y: Any) -> Watcher | None:
        """The charge law of a generator that acts on each layer as W ↦ L W + W R; None for another.

        `X` and `Y` of an `SGD` problem are used where they are; other arrays are copied. A tracked step costs one
        gradient over all samples, layer by layer, and the products with L_l and R_l.
        """
        layers = generator.layers(self._matrices)
        if layers is None:
            return None
        from sgdsde.models import deep_linear_charge as charge

        samples = self.samples(X, Y)
        head = [[_check.number("gamma", gamma, least=0.0)], samples.numbers, [generator.norm]]
        p = np.concatenate([*head, *_packed(layers)])
        return Watcher(charge.charge_law, p, samples.data, CHARGE_ROWS, self.work(samples.n))

    def charge_traces(self, generators: Sequence[Generator], X: Any, Y: Any) -> Watcher | None:
        """Tr[ΣA] of generators that act on each layer as W ↦ L W + W R, all in one pass over the samples."""
        found = [generator.layers(self._matrices) for generator in generators]
        layers = [one for one in found if one is not None]
        if len(layers) < len(found):
            return None
        from sgdsde.models.deep_linear_passes import CHUNK
        from sgdsde.models.deep_linear_traces import traces

        samples = self.samples(X, Y)
        used = np.zeros((self.depth, 2))
        for one in layers:
            used += [[m is not None for m in pair] for pair in one]
        used = np.minimum(used, 1.0)
        rows, widest = min(samples.n, CHUNK), max(self.dims)
        squares = int((used * np.square([(n, m) for n, m in self._matrices])).sum())
        spare = max(rows * widest + widest**2, *(n * m for n, m in self._matrices))
        work = samples.n + 2 * self.dim + squares + rows * sum(self.dims[1:]) + spare
        p = np.concatenate([samples.numbers, used.ravel(), *(part for one in layers for part in _packed(one))])
        return Watcher(traces, p, samples.data, len(layers), (work, 0))


def _packed(layers: list[tuple[np.ndarray | None, np.ndarray | None]]) -> list[np.ndarray]:
    """What `deep_linear_charge` reads of one generator."""
    numbers: list[np.ndarray] = []
    for pair in layers:
        kinds, values = zip(*(_packed_factor(m) for m in pair))
        numbers += [np.array(kinds, dtype=np.float64), *values]
    return numbers


def _packed_factor(matrix: np.ndarray | None) -> tuple[int, np.ndarray]:
    """Kind and numbers of L or R, as `deep_linear_charge` reads them."""
    from sgdsde.models.deep_linear_charge import ABSENT, SCALAR, WHOLE

    if matrix is None:
        return ABSENT, np.empty(0)
    if np.array_equal(matrix, matrix[0, 0] * np.eye(matrix.shape[0])):
        return SCALAR, matrix[0, :1].copy()
    return WHOLE, matrix.ravel()
