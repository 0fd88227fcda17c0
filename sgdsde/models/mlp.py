"""MLP: a multilayer perceptron with squared, logistic or softmax loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ModelError
from sgdsde.algebra import Affine, Generator
from sgdsde.models import mlp_symmetry
from sgdsde.models.charge_rows import CHARGE_ROWS
from sgdsde.models.losses import Loss, read_loss
from sgdsde.models.model import Compiled, Model, Samples
from sgdsde.models.naming import Named
from sgdsde.models.packing import pack
from sgdsde.run.watching import Watcher

__all__ = ["MLP"]

ACTIVATIONS = {"identity": 0, "tanh": 1, "sigmoid": 2, "relu": 3, "leaky_relu": 4, "gelu": 5}
"""Numbers by which the kernels know them (`activations`)."""


class MLP(Model):
    """A multilayer perceptron o = W_D φ(… φ(W_1 x + b_1) …) + b_D with ℓ_i = scale·loss(o, y_i).

    Parameters
    ----------
    dims : sequence of int
        [n_0, …, n_D]: inputs, hidden widths, outputs; W_l has shape (n_l, n_{l-1}). [n_0, n_1] has no hidden layer.
    activation : str
        φ of the hidden layers: "tanh", "relu", "leaky_relu", "sigmoid", "gelu" (the exact one) or "identity". At its
        kink the derivative of relu is 0, that of leaky relu `slope`.
    biases : bool
        Whether there are b_l.
    loss : str or Loss
        "squared": ‖o - y‖², without ½. "logistic": labels ±1, or 0/1, for each output. "softmax": class numbers (N,),
        or rows of probabilities. See `losses`.
    scale : float
        Multiplies the loss.
    slope : float
        Of leaky_relu below zero, in (0, 1].

    Notes
    -----
    θ = [W_1, b_1, …, W_D, b_D], each raveled in C order, with the names W1, b1, …. A step of the SDE is one weighted
    gradient over all samples, by matrix products for 128 to 1024 samples at a time: 3Σ_l n_l n_{l-1} - n_1 n_0
    multiplications a sample. Scratch is bounded for large N, but for N weights, and no array has N·d or d² numbers.
    The correction of the Stratonovich form costs three times as much, a Hessian-vector product twice.

    Examples
    --------
    >>> model = MLP([3, 4, 2], activation="relu", loss="softmax")
    >>> model
    MLP([3, 4, 2], activation='relu', loss='softmax')
    >>> model.dim, model.shapes
    (26, {'W1': (4, 3), 'b1': (4,), 'W2': (2, 4), 'b2': (2,)})
    >>> list(model.symmetries())[:5]
    ['W1/W2', 'W1/W2[0]', 'W1/W2[1]', 'W1/W2[2]', 'W1/W2[3]']
    >>> model.symmetries()["W1/W2[0]"].quadratic(np.ones(26))  # 3 weights and a bias in, 2 weights out
    2.0
    """

    block = 1

    def __init__(
        self,
        dims: Sequence[int],
        activation: str = "tanh",
        *,
        biases: bool = True,
        loss: str | Loss = "squared",
        scale: float = 1.0,
        slope: float = 0.01,
    ) -> None:
        if isinstance(dims, (str, bytes)) or not isinstance(dims, (Sequence, np.ndarray)) or len(dims) < 2:
            raise ArgumentError(f"dims must hold at least two widths [inputs, …, outputs], got {_check.show(dims)}")
        self.dims = tuple(_check.count(f"dims[{k}]", n) for k, n in enumerate(dims))
        self.activation = _check.choice("activation", activation, ACTIVATIONS)
        self.biases = _check.flag("biases", biases)
        self.loss_function = read_loss(loss)
        if self.loss_function.name == "softmax" and self.dims[-1] < 2:
            raise ArgumentError("loss must be 'logistic' or 'squared' for one output, got 'softmax'")
        self.scale = _check.positive("scale", scale)
        self.slope = _check.positive("slope", slope)
        if self.slope > 1.0:
            raise ArgumentError(f"slope must be in (0, 1], got {slope!r}")
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

    def _options(self) -> str:
        """What differs from the defaults, as it is written in a call."""
        shown = "" if self.depth == 1 else f", activation={self.activation!r}"
        if self.activation == "leaky_relu" and self.depth > 1:
            shown += f", slope={self.slope:g}"
        shown += "" if self.biases else ", biases=False"
        return shown + ("" if self.scale == 1.0 else f", scale={self.scale:g}")

    def __repr__(self) -> str:
        return f"MLP({list(self.dims)}{self._options()}, loss={self.loss_function.name!r})"

    # --- kernels and their arrays -------------------------------------------------------------------------------------

    def samples(self, X: Any, Y: Any) -> Samples:
        """X of shape (N, n_0), or (N,) for one input, and Y as `loss` wants it."""
        if Y is None:
            raise ModelError(f"{self!r} needs samples X and Y, got X alone ({_check.show(X)})")
        Y = self.loss_function.targets(Y, self.dims[-1])
        columns = Y.shape[1] if Y.ndim == 2 else 1
        X, Y, data = pack(X, Y, self.dims[0], columns)
        n = X.shape[0]
        kinds = [self.loss_function.kind, columns, ACTIVATIONS[self.activation], self.slope, self.biases, self.depth]
        return Samples(X, Y, n, np.array([n, self.scale, *kinds, *self.dims], dtype=np.float64), data)

    def compiled(self, factor: str | None = None) -> Compiled:
        """The kernels."""
        from sgdsde.models import mlp_kernels as gradients
        from sgdsde.models import mlp_sample as single
        from sgdsde.models import mlp_step as steps
        from sgdsde.models import mlp_tangent as tangents

        return Compiled(
            gradients.weighted,
            steps.sample,
            gradients.losses,
            gradients.increment,
            tangents.correction,
            steps.step,
            tangents.hessian,
            single.hessian_traces,
            single.gradient_norms,
        )

    def work(self, n: int) -> tuple[int, int]:
        """Scratch for passes over n samples: bounded for large n but for the weights, n doubles."""
        d, n0, out, widest, outputs = self.dim, self.dims[0], self.dims[-1], max(self.dims[1:]), sum(self.dims[1:])
        rows = min(n, 1024, max(128, widest // 64 * 64))
        kept = 2 * (outputs - out) if self.activation == "gelu" else 0
        most = max(widest, 2)
        gradient = rows * (outputs + kept + most)
        step = d + rows * (1 + n0 + out) + d + gradient
        tangent = rows * (4 * outputs + kept + out + 1 + most)
        traces = n + rows * (out + 2 * outputs + kept + self.depth) + max(rows * most, 2 * widest**2 + 6 * widest)
        largest = max(r * c for c, r in pairwise(self.dims))
        charge = n + 4 * d + max(rows * (2 * outputs + kept + 2 + max(most, n0)), largest)
        return max(n + 3 * d + max(gradient, tangent), step + 3, traces, n + rows * (2 + most) + gradient, charge), 0

    def init(self, rng: Any = None, scale: float = 1.0) -> np.ndarray:
        """A start: biases 0, every entry of W_l from N(0, scale²/n_{l-1}); `scale=2**0.5` suits relu.

        Parameters and result as those of `Model.init`; the weights are the same numbers with and without biases of a
        network of the same `rng` and one layer.
        """
        theta = super().init(rng, scale)
        for name, at in self.places().items():
            if name.startswith("b"):
                theta[at] = 0.0
        return theta

    # --- symmetry -----------------------------------------------------------------------------------------------------

    def symmetries(self) -> Named[Generator | Affine]:
        """All linear and affine symmetries of the architecture, each made when it is looked up.

        Of relu and leaky relu a rescaling for each hidden unit: "W1/W2[3]" is +1 on the weights and the bias that lead
        to unit 3 of hidden layer 1, and -1 on the weights that lead out of it; "W1/W2" all units of that layer
        together. Of the identity those of `DeepLinear`, the bias turned with its layer, and with biases
        "b1/b2[3]": b_1 + c e_3, b_2 - c W_2e_3 (an `Affine`, no charge). Of tanh, sigmoid and gelu none.

        Softmax adds the translations "b2", "W2[:,5]", as `Affine` generators with charges linear in θ. (Of two classes
        it sees one output, and layers of the identity have the shears of one; these are not named.)
        """
        return mlp_symmetry.symmetries(self)

    def translations(self) -> Mapping[str, np.ndarray]:
        """Directions v (d,) along which no sample's loss changes, ℓ_i(θ + λv) = ℓ_i(θ): of the softmax loss.

        "b2" moves all entries of the last bias together, "W2[:,5]" those of column 5 of the last matrix. Such a v has a
        charge linear in θ, vᵀθ, which no noise moves: each step of SGD and of its SDE takes it to (1 - 2ηγ)vᵀθ.
        """
        return mlp_symmetry.translations(self)

    def generator(self, B: Any, layer: int = 1, name: str = "") -> Generator:
        """The symmetry W_l ↦ -B W_l, b_l ↦ -B b_l, W_{l+1} ↦ W_{l+1} B of hidden layer l.

        Parameters
        ----------
        B : array_like of shape (n_l, n_l)
            Any matrix for the identity, a diagonal one for relu and leaky relu.
        layer : int
            l in 1..D-1.
        name : str
            Of the generator.

        Raises
        ------
        ArgumentError
            For the other activations, which have no such symmetry, and a B that is not one.

        Examples
        --------
        >>> model = MLP([1, 2, 1], activation="relu", biases=False)
        >>> model.generator([[1.0, 0.0], [0.0, 0.0]], name="first unit").quadratic([3.0, 0.0, 2.0, 0.0])
        -5.0
        """
        return mlp_symmetry.generator(self, B, layer, name)

    def charge_track(self, generator: Generator, gamma: float, X: Any, Y: Any) -> Watcher | None:
        """The charge law of a generator that acts on each W as W ↦ L W + W R, each b as b ↦ L b; None for another.

        A tracked step costs one gradient over all samples, and the products with L and R where they are not diagonal.
        """
        numbers = mlp_symmetry.packed(self, generator)
        if numbers is None:
            return None
        from sgdsde.models.mlp_charge import charge_law

        samples = self.samples(X, Y)
        p = np.concatenate([[_check.number("gamma", gamma, least=0.0)], samples.numbers, numbers])
        return Watcher(charge_law, p, samples.data, CHARGE_ROWS, self.work(samples.n))
