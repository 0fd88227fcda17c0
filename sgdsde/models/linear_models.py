"""Linear, logistic and softmax regression: an `MLP` without a hidden layer. A gradient is two products over samples."""

from __future__ import annotations

from sgdsde import _check
from sgdsde.models.mlp import MLP

__all__ = ["LinearRegression", "LogisticRegression", "SoftmaxRegression"]


class _Linear(MLP):
    """What the three share: o = W x + b, θ = [W1, b1]."""

    _loss: str

    def __init__(self, n_inputs: int, n_outputs: int = 1, *, biases: bool = True, scale: float = 1.0) -> None:
        dims = [_check.count("n_inputs", n_inputs), _check.count("n_outputs", n_outputs)]
        super().__init__(dims, "identity", biases=biases, loss=self._loss, scale=scale)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dims[0]}, {self.dims[1]}{self._options()})"


class LinearRegression(_Linear):
    """Least squares, ℓ_i = scale·‖W x_i + b - y_i‖².

    Parameters
    ----------
    n_inputs, n_outputs : int
    biases : bool
        Whether there is b.
    scale : float
        Multiplies the loss, which has no ½.

    Examples
    --------
    >>> model = LinearRegression(2)
    >>> model, model.shapes
    (LinearRegression(2, 1), {'W1': (1, 2), 'b1': (1,)})
    >>> samples = model.samples([[1.0, 0.0], [0.0, 2.0]], [1.0, 0.0])
    >>> model.hessian_vector([0.0, 0.0, 0.0], [1.0, 0.0, 0.0], samples)
    array([1., 0., 1.])
    """

    _loss = "squared"


class LogisticRegression(_Linear):
    """Logistic regression, ℓ_i = scale·Σ_j log(1 + e^{-y_ij o_ij}), o_i = W x_i + b, labels ±1 or 0/1.

    Parameters
    ----------
    n_inputs, n_outputs : int
        Each output is a problem of its own.
    biases : bool
    scale : float

    Examples
    --------
    >>> model = LogisticRegression(2, biases=False)
    >>> model.loss([0.0, 0.0], model.samples([[1.0, 0.0], [0.0, 2.0]], [1, 0]))
    0.6931471805599453
    """

    _loss = "logistic"


class SoftmaxRegression(_Linear):
    """Softmax regression, ℓ_i = scale·(log Σ_j e^{o_ij} - o_{i,y_i}), o_i = W x_i + b, class numbers or probabilities.

    Parameters
    ----------
    n_inputs : int
    n_outputs : int
        Classes, at least 2.
    biases : bool
    scale : float

    Notes
    -----
    A row added to all rows of W, and a number added to all of b, change no loss: `translations` has the
    directions, `symmetries` the generators.

    Examples
    --------
    >>> model = SoftmaxRegression(2, 3)
    >>> model.loss(model.init(0, scale=0.0), model.samples([[1.0, 0.0], [0.0, 2.0]], [1, 2]))
    1.0986122886681098
    >>> list(model.symmetries())
    ['b1', 'W1[:,0]', 'W1[:,1]']
    """

    _loss = "softmax"

    def __init__(self, n_inputs: int, n_outputs: int, *, biases: bool = True, scale: float = 1.0) -> None:
        n_outputs = _check.count("n_outputs", n_outputs, least=2)
        super().__init__(n_inputs, n_outputs, biases=biases, scale=scale)
