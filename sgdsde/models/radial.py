"""RadialNetwork: a network whose hidden layers are stretched as whole vectors, σ(z) = f(‖z‖)z."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ModelError
from sgdsde.algebra import Generator
from sgdsde.models import hidden_rotations
from sgdsde.models.charge_rows import CHARGE_ROWS
from sgdsde.models.losses import Loss, read_loss
from sgdsde.models.model import Compiled, Model, Samples
from sgdsde.models.naming import Named
from sgdsde.models.packing import pack
from sgdsde.models.widths import read_widths
from sgdsde.run.watching import Watcher

__all__ = ["RadialNetwork"]

DEGREE = 3
"""σ(cz) = c³σ(z) for "squared"."""
POWER = {"squared": 3, "tanh": 0, "sigmoid": 1}
"""‖σ(z)‖² is like n^POWER for n units z of order 1."""


class RadialNetwork(Model):
    """o = W_D σ(… σ(W_1 x + b_1) …) + b_D with radial activations σ(z) = f(‖z‖)z, ℓ_i = scale·loss(o, y_i).

    Parameters
    ----------
    dims : sequence of int
        [n_0, n_1, …, n_D], D >= 2: inputs, hidden widths, outputs; W_l has shape (n_l, n_{l-1}).
    radial : {"squared", "tanh", "sigmoid"}
        f: "squared" ‖z‖², "tanh" tanh‖z‖/‖z‖, "sigmoid" 1/(1 + e^{-‖z‖}).
    biases : bool
        Whether there are b_l.
    loss : str or Loss
        "squared": ‖o - y‖², without ½; "logistic"; "softmax". See `losses`.
    scale : float
        Multiplies the loss.

    Notes
    -----
    θ = [W_1, b_1, …, W_D, b_D], each raveled in C order. σ commutes with rotations of its layer, so that each hidden
    layer of h units has O(h) for its symmetry, with h(h - 1)/2 antisymmetric generators: no charge θᵀAθ, but θᵀAᵀdθ = 0
    for each step (radial activations: Zhao et al., arXiv 2210.17216). Passes cost what those of `MLP` do.

    Examples
    --------
    >>> model = RadialNetwork([3, 2, 1])
    >>> model, model.shapes
    (RadialNetwork([3, 2, 1], radial='tanh'), {'W1': (2, 3), 'W2': (1, 2)})
    >>> list(model.symmetries()), model.symmetries()["rotation(0,1)"].is_antisymmetric
    (['rotation(0,1)'], True)
    >>> RadialNetwork([1, 2, 1], "squared").symmetries()["W1/W2"].eigenvalues
    array([ 1.,  1., -3., -3.])
    """

    block = 1

    def __init__(
        self,
        dims: Sequence[int],
        radial: str = "tanh",
        *,
        biases: bool = False,
        loss: str | Loss = "squared",
        scale: float = 1.0,
    ) -> None:
        from sgdsde.models.radial_functions import RADIAL

        self.dims = read_widths(dims, least=3)
        self.radial = _check.choice("radial", radial, RADIAL)
        self.biases = _check.flag("biases", biases)
        self.loss_function = read_loss(loss)
        if self.loss_function.name == "softmax" and self.dims[-1] < 2:
            raise ArgumentError("loss must be 'logistic' or 'squared' for one output, got 'softmax'")
        self.scale = _check.positive("scale", scale)
        self.shapes = {}
        for k, (m, n) in enumerate(pairwise(self.dims), start=1):
            self.shapes[f"W{k}"] = (n, m)
            if self.biases:
                self.shapes[f"b{k}"] = (n,)
        self.dim = sum(int(np.prod(shape)) for shape in self.shapes.values())

    @property
    def depth(self) -> int:
        """D, the number of matrices."""
        return len(self.dims) - 1

    def __repr__(self) -> str:
        shown = f", radial={self.radial!r}" + (", biases=True" if self.biases else "")
        shown += "" if self.loss_function.name == "squared" else f", loss={self.loss_function.name!r}"
        return f"RadialNetwork({list(self.dims)}{shown}{'' if self.scale == 1.0 else f', scale={self.scale:g}'})"

    # --- kernels and their arrays -------------------------------------------------------------------------------------

    def samples(self, X: Any, Y: Any) -> Samples:
        """X of shape (N, n_0), or (N,) for one input, and Y as `loss` wants it."""
        from sgdsde.models.radial_functions import RADIAL

        if Y is None:
            raise ModelError(f"{self!r} needs samples X and Y, got X alone ({_check.show(X)})")
        Y = self.loss_function.targets(Y, self.dims[-1])
        columns = Y.shape[1] if Y.ndim == 2 else 1
        X, Y, data = pack(X, Y, self.dims[0], columns)
        n = X.shape[0]
        kinds = [self.loss_function.kind, columns, RADIAL[self.radial], 1.0, self.biases, self.depth]
        return Samples(X, Y, n, np.array([n, self.scale, *kinds, *self.dims], dtype=np.float64), data)

    def compiled(self, factor: str | None = None) -> Compiled:
        """The kernels."""
        from sgdsde.models import radial_kernels as k
        from sgdsde.models import radial_sample as single
        from sgdsde.models import radial_second as second

        first = (k.weighted, k.sample, k.losses, k.increment, second.correction, k.step)
        return Compiled(*first, second.hessian, single.hessian_traces, single.gradient_norms)

    def work(self, n: int) -> tuple[int, int]:
        """Scratch for passes over n samples: bounded for large n but for the weights, n doubles."""
        d, n0, out, widest, outputs = self.dim, self.dims[0], self.dims[-1], max(self.dims[1:]), sum(self.dims[1:])
        rows, top = min(n, 1024, max(128, widest // 64 * 64)), self.depth
        kept = 3 * (top - 1)
        gradient = rows * (2 * outputs + kept + 1 + max(widest, 2))
        step = 2 * d + rows * (1 + n0 + out) + gradient + 3
        tangent = rows * (6 * outputs + kept + out + 4 + max(widest, 2))
        both = rows * (4 * outputs + kept)
        traces = n + rows * (out + top) + both + max(2 * rows, 2 * widest**2 + 3 * widest)
        charge = n + 2 * top + 4 * d + both + 2 * rows
        return max(n + 3 * d + max(gradient, tangent), step, traces, charge), 0

    def fan_in(self, name: str) -> int:
        """The size of ‖a_{l-1}‖² where z_{l-1} is of order 1: n_{l-1}³ for "squared", 1 for "tanh"; n_0 for inputs."""
        n = self.shapes[name][-1]
        return n if name == "W1" else n ** POWER[self.radial]

    def init(self, rng: Any = None, scale: float = 1.0) -> np.ndarray:
        """A start: biases 0, every entry of W_l from N(0, scale²/fan_in), so that all z_l are of order 1.

        Parameters and result as those of `Model.init`.
        """
        theta = super().init(rng, scale)
        for name, at in self.places().items():
            if name.startswith("b"):
                theta[at] = 0.0
        return theta

    # --- symmetry -----------------------------------------------------------------------------------------------------

    def symmetries(self) -> Named[Generator]:
        """Rotations of the units of each hidden layer, each made when it is looked up; of "squared" also rescalings.

        "rotation(0,1)" turns units 0 and 1, for more hidden layers "layer2:rotation(0,1)". σ(cz) = c³σ(z) of "squared"
        gives the symmetric "W1/W2": +1 on W_1 and b_1, -3 on W_2, with the charge ‖W_1‖² + ‖b_1‖² - 3‖W_2‖².
        """
        makers: dict[str, Callable[[], Generator]] = {}
        if self.radial == "squared":
            for layer in range(1, self.depth):
                name = f"W{layer}/W{layer + 1}"
                makers[name] = partial(self._rescaling, layer, name)
        return hidden_rotations.symmetries(self, makers)

    def generator(self, B: Any, layer: int = 1, name: str = "") -> Generator:
        """The rotation W_l ↦ -B W_l, b_l ↦ -B b_l, W_{l+1} ↦ W_{l+1} B of hidden layer l.

        Parameters
        ----------
        B : array_like of shape (n_l, n_l)
            Antisymmetric.
        layer : int
            l in 1..D-1.
        name : str
            Of the generator.
        """
        return hidden_rotations.generator(self, B, layer, name)

    def _rescaling(self, layer: int, name: str) -> Generator:
        a = np.zeros(self.dim)
        for array, at in self.places().items():
            if array in (f"W{layer}", f"b{layer}"):
                a[at] = 1.0
            elif array == f"W{layer + 1}":
                a[at] = -DEGREE
        return Generator.diagonal(a, name)

    def charge_track(self, generator: Generator, gamma: float, X: Any, Y: Any) -> Watcher | None:
        """The charge law of a generator that multiplies each array by a number; None for another."""
        numbers = hidden_rotations.multiples(self, generator)
        if numbers is None:
            return None
        from sgdsde.models.radial_charge import charge_law

        samples = self.samples(X, Y)
        alpha = [numbers.get(f"{kind}{k}", 0.0) for k in range(1, self.depth + 1) for kind in "Wb"]
        p = np.concatenate([[_check.number("gamma", gamma, least=0.0)], samples.numbers, [generator.norm], alpha])
        return Watcher(charge_law, p, samples.data, CHARGE_ROWS, self.work(samples.n))
