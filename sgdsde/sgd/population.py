"""Where the data of an `SGD` problem come from: samples, or a law from which discrete SGD draws fresh ones each step.

A law is a `GaussianTeacher`, or a `Population` that knows how to draw. Means over the data, and so the SDE, are closed
forms of it for `DeepLinear` and `Product`; other models take them over a fixed draw of `law.n_estimate` samples.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sgdsde._abi import STEP
from sgdsde._address import address
from sgdsde._errors import ModelError, ShapeError
from sgdsde.datasets.gaussian_teacher import GaussianTeacher
from sgdsde.models.gaussian_deep_linear import GaussianDeepLinear
from sgdsde.models.model import Model, Samples
from sgdsde.models.population import Population, gaussian

__all__ = ["Fresh", "check_arrays", "fresh", "read_data", "reads_arrays"]


def read_data(model: Model, X: Any, Y: Any) -> tuple[Model, Samples, Any]:
    """The model that suits the data, the samples over which means are taken, and the law, None for samples."""
    from sgdsde.models.deep_linear import DeepLinear

    if isinstance(model, GaussianDeepLinear) and not isinstance(X, GaussianTeacher):
        model = model.plain
    if not isinstance(X, GaussianTeacher):
        return model, model.samples(X, Y), X if isinstance(X, Population) else None
    if Y is not None:
        raise ModelError("Y must be None when X is a GaussianTeacher: it says what the targets are")
    if type(model) is DeepLinear:
        model = GaussianDeepLinear(model.dims, model.scale)
    if isinstance(model, GaussianDeepLinear):
        return model, model.samples(X, None), X
    if X.V.shape == (1, 1):
        law = gaussian(0.0, float(X.Sigma_x[0, 0]) ** 0.5, float(X.V[0, 0]), float(X.Sigma_eps[0, 0]) ** 0.5)
        try:
            return model, model.samples(law, None), X
        except (ModelError, ShapeError, TypeError, ValueError):
            pass  # a model that knows samples alone
    return model, model.samples(*X.draw(X.n_estimate, X.estimate_seed)), X


class Fresh(NamedTuple):
    """x = μ + Lz, y = Vx + Mε, as `population_kernels.fresh_step` reads it."""

    mean: np.ndarray
    L: np.ndarray
    V: np.ndarray
    M: np.ndarray

    @property
    def normals(self) -> int:
        """Normal numbers in one sample."""
        return self.L.shape[1] + self.M.shape[1]

    def batch(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Some samples."""
        from sgdsde.random.stream import normals

        z = normals(0, 0, count=size * self.normals).reshape(size, -1)
        k = self.L.shape[1]
        X = self.mean + z[:, :k] @ self.L.T
        return X, X @ self.V.T + z[:, k:] @ self.M.T

    def tail(self, step: Any) -> np.ndarray:
        """The end of `data`."""
        sizes = [*self.V.shape[::-1], self.L.shape[1], self.M.shape[1]]
        arrays = [self.mean, self.L.T.ravel(), self.V.T.ravel(), self.M.T.ravel()]
        return np.concatenate([*arrays, [*sizes, *map(float, address(step, STEP))]])


def fresh(model: Model, law: Any) -> tuple[Model, Fresh]:
    """The model whose step runs on batches of the law, and how those are drawn.

    Raises
    ------
    ModelError
        The law has moments only, or the model does not read X and Y from its arrays.
    """
    if isinstance(law, Population):
        if law.sampler is None:
            raise ModelError(
                f"discrete SGD draws samples, and {law!r} has moments only: run problem.sde() with solve, "
                "or draw samples and give them as X, Y"
            )
        mean, spread, slope, noise = (np.array([[value]]) for value in law.sampler)
        made = Fresh(mean[0], spread, slope, noise)
    else:
        made = Fresh(np.zeros(law.V.shape[1]), law.root_x, law.V, law.root_eps)
    plain = model.plain if isinstance(model, GaussianDeepLinear) else model
    check_arrays(plain, *made.batch(2))
    return plain, made


def reads_arrays(model: Model, X: Any, Y: Any) -> bool:
    """Whether the kernels read X and Y from their arrays, X and then Y raveled and no more, tried on two samples.

    The passes of a model that is a function of Python read their data elsewhere.
    """
    one, other = model.samples(X[:1], Y[:1]), model.samples(X[1:2], Y[1:2])
    if other.data.size != np.size(X[1:2]) + np.size(Y[1:2]):
        return False
    theta = model.init(rng=0)
    found, wanted = (model.per_sample_gradients(theta, samples) for samples in (one._replace(data=other.data), other))
    return np.array_equal(found, wanted)


def check_arrays(model: Model, X: Any, Y: Any) -> None:
    """ModelError where the model's step cannot run on a batch that is put together."""
    if not reads_arrays(model, X, Y):
        raise ModelError(
            f"samples that are made at each step need a model whose kernels read X and Y from arrays, got {model!r}"
        )
