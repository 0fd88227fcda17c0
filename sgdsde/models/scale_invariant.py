"""ScaleInvariant: a deep linear network divided by norms of its weights, so that only directions matter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ModelError
from sgdsde.algebra import Generator, scaling
from sgdsde.models import hidden_rotations
from sgdsde.models.charge_rows import CHARGE_ROWS
from sgdsde.models.deep_linear import DeepLinear
from sgdsde.models.model import Compiled, Model, Samples
from sgdsde.models.naming import Named
from sgdsde.models.packing import pack
from sgdsde.models.widths import read_widths
from sgdsde.run.watching import Watcher

__all__ = ["ScaleInvariant"]


class ScaleInvariant(Model):
    """f(x) = W_D … W_1 x over norms of the weights, ℓ_i = scale·‖f(x_i) - y_i‖².

    Parameters
    ----------
    dims : sequence of int
        [n_0, …, n_D]: inputs, hidden widths, outputs; W_l has shape (n_l, n_{l-1}). [n, 1] is f = θ·x/‖θ‖.
    norm : {"total", "layers"}
        What the product is divided by. "total": ‖θ‖^D, so that θ ↦ cθ changes nothing; two layers are
        f = W_2W_1x/(‖W_1‖² + ‖W_2‖²). "layers": ‖W_1‖…‖W_D‖, so that each W_l ↦ cW_l changes nothing; two layers are
        f = W_2W_1x/(‖W_1‖‖W_2‖).
    scale : float
        Multiplies the loss, which has no ½.

    Notes
    -----
    θ = [W_1, …, W_D], each raveled in C order. The gradient of each sample is orthogonal to θ ("total") or to each W_l
    ("layers"), so that a step of SGD has ‖θ'‖² = (1 - 2ηγ)²‖θ‖² + η²‖ĝ‖²: without weight decay the norm only grows, and
    under gradient flow it stays. With it, it settles where ‖θ‖⁴ = ηTr Σ(θ/‖θ‖)/(4γS), nearly. At θ = 0, or at one
    W_l = 0 with "layers", f has no value: losses and gradients are NaN, and a path that gets there has diverged.

    A pass is one of `DeepLinear` at the unit vectors and a projection, and costs as much. Correction, Hessian times
    vector, Tr H and ‖∇ℓ_i‖² are closed forms.

    Examples
    --------
    >>> model = ScaleInvariant([2, 1])
    >>> round(model.loss([3.0, 4.0], model.samples([[1.0, 0.0]], [0.0])), 12)
    0.36
    >>> list(ScaleInvariant([2, 2, 1], norm="layers").symmetries())
    ['W1', 'W2', 'rotation(0,1)']
    >>> ScaleInvariant([2, 2, 1]).symmetries()["scaling"].quadratic([1.0, 1.0, 1.0, 1.0, 2.0, 0.0])
    8.0
    """

    block = 1

    def __init__(self, dims: Sequence[int], norm: str = "total", scale: float = 1.0) -> None:
        self.dims = read_widths(dims)
        self.norm = _check.choice("norm", norm, ["total", "layers"])
        self.scale = _check.positive("scale", scale)
        self.shapes = {f"W{k}": (n, m) for k, (m, n) in enumerate(pairwise(self.dims), start=1)}
        self.dim = sum(n * m for n, m in self.shapes.values())

    @property
    def depth(self) -> int:
        """D, the number of matrices."""
        return len(self.dims) - 1

    def __repr__(self) -> str:
        scale = "" if self.scale == 1.0 else f", scale={self.scale:g}"
        return f"ScaleInvariant({list(self.dims)}, norm={self.norm!r}{scale})"

    # --- kernels and their arrays -------------------------------------------------------------------------------------

    def samples(self, X: Any, Y: Any) -> Samples:
        """X of shape (N, n_0) and Y of shape (N, n_D), or (N,) for one output."""
        if Y is None:
            raise ModelError(f"{self!r} needs samples X and Y, got X alone ({_check.show(X)})")
        X, Y, data = pack(X, Y, self.dims[0], self.dims[-1])
        n = X.shape[0]
        numbers = [n, self.scale, self.depth, *self.dims, self.norm == "layers"]
        return Samples(X, Y, n, np.array(numbers, dtype=np.float64), data)

    def compiled(self, factor: str | None = None) -> Compiled:
        """The kernels."""
        from sgdsde.models import scale_invariant_kernels as k
        from sgdsde.models import scale_invariant_second as s

        first = (k.weighted, k.sample, k.losses, k.increment)
        return Compiled(*first, s.correction, k.step, s.hessian, s.hessian_traces, s.gradient_norms)

    def work(self, n: int) -> tuple[int, int]:
        """That of `DeepLinear`, and a few vectors of d numbers."""
        from sgdsde.models.deep_linear_passes import CHUNK

        return DeepLinear(self.dims).work(n)[0] + n + 2 * min(n, CHUNK) + 5 * self.dim + 4 * self.depth + 2, 0

    # --- symmetry -----------------------------------------------------------------------------------------------------

    def symmetries(self) -> Named[Generator]:
        """Scalings, then rotations of the units of each hidden layer, each made when it is looked up.

        "scaling" is A = 1 for norm="total", with the charge ‖θ‖²; for norm="layers" "W1", "W2", … are 1 on one matrix,
        with the charges ‖W_l‖². "rotation(0,1)", for more hidden layers "layer2:rotation(0,1)", are antisymmetric and
        have no charge.
        """
        makers: dict[str, Callable[[], Generator]] = {"scaling": partial(scaling, self.dim)}
        if self.norm == "layers":
            makers = {name: partial(scaling, self.dim, at, name) for name, at in self.places().items()}
        return hidden_rotations.symmetries(self, makers)

    def generator(self, B: Any, layer: int = 1, name: str = "") -> Generator:
        """The rotation W_l ↦ -B W_l, W_{l+1} ↦ W_{l+1} B of hidden layer l, for an antisymmetric B (n_l, n_l)."""
        return hidden_rotations.generator(self, B, layer, name)

    def charge_track(self, generator: Generator, gamma: float, X: Any, Y: Any) -> Watcher | None:
        """The charge law of a generator that multiplies each layer by a number; None for another."""
        numbers = hidden_rotations.multiples(self, generator)
        if numbers is None:
            return None
        from sgdsde.models.scale_invariant_charge import charge_law

        samples = self.samples(X, Y)
        head = [[_check.number("gamma", gamma, least=0.0)], samples.numbers, [generator.norm]]
        return Watcher(
            charge_law, np.concatenate([*head, list(numbers.values())]), samples.data, CHARGE_ROWS, self.work(samples.n)
        )
