"""Label noise: at every step each label of the batch is moved by fresh noise, y + std·ε, ε ~ N(0, I).

With squared loss a gradient is linear in its label, ∇ℓ(θ; x, y + δ) = ∇ℓ(θ; x, y) - 2·scale·J(x)ᵀδ, so that mean and
covariance over data and noise are exactly those over finitely many labels: `sigma_points`. Whatever needs means over
samples (Σ, its factor, the charge laws, the correction) takes the points for samples, and nothing else changes. The
SDE's increment, whose weights of the points of one sample add up, is one weighted pass over the N samples all the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._address import address
from sgdsde._errors import ArgumentError, ModelError, ShapeError
from sgdsde.equation._equation import Kernels
from sgdsde.models.model import WEIGHTED, Model, Samples

__all__ = ["check_linear", "collapsed", "points", "read_label_noise", "sigma_points", "two_of"]

SLACK = 1e-9


def read_label_noise(value: Any, samples: Samples, law: Any) -> np.ndarray | None:
    """Standard deviations (d_y,) of the noise of each output, None where there is none."""
    if value is None:
        return None
    std = _check.array("label_noise", value)
    if std.size and std.min() < 0.0:
        raise ArgumentError(f"label_noise must be at least 0, got {std.min():g}")
    outputs = samples.Y.shape[1] if samples.Y is not None and samples.Y.ndim == 2 else 1
    if std.shape not in ((), (outputs,)):
        raise ShapeError(f"label_noise must be a number or have shape ({outputs},), got {std.shape}")
    if not std.any():
        return None
    if law is not None:
        raise ArgumentError(f"label_noise must be 0 with {law!r}: put its variance into the law's noise (Sigma_eps)")
    if samples.Y.dtype != np.float64 or samples.Y.ndim > 2:
        raise ModelError(
            f"label_noise needs floats (N, d_y) for Y, got {_check.show(samples.Y)}; Y.astype(float) perhaps"
        )
    return np.ascontiguousarray(np.broadcast_to(std, (outputs,)))


def sigma_points(std: np.ndarray) -> np.ndarray:
    """Points δ (e + 1, d_y) of equal weight with mean 0 and covariance diag(std²): the corners of a simplex.

    e is the number of outputs with noise. From Helmert's matrix, whose columns after the first are orthonormal and add
    up to zero.

    Examples
    --------
    >>> sigma_points(np.array([0.5])).ravel()
    array([ 0.5, -0.5])
    """
    noisy = np.flatnonzero(std)
    e = noisy.size
    out = np.zeros((e + 1, std.size))
    for c, j in enumerate(noisy, start=1):
        out[:c, j] = 1.0
        out[c, j] = -c
        out[:, j] *= std[j] * np.sqrt((e + 1) / (c * (c + 1)))
    return out


def points(model: Model, samples: Samples, std: np.ndarray, rho: float) -> Samples:
    """Samples, with every label moved to each of the points: block k of N rows has point k.

    The covariance of their gradients is Σ_data + Σ_label/ρ: times the noise scale σ²ρ of the SDE, and times ρ/S of a
    batch, the noise of labels is what it is also where batches are drawn without replacement.
    """
    from sgdsde.run.memory import refuse_more_than_half

    if rho == 0.0:
        raise ArgumentError(
            "batch_size must be less than N with label_noise, or replacement True: with all samples in every batch the "
            "noise of labels is all there is, which is no multiple of ρ = 0"
        )
    check_linear(model, samples)
    moves = sigma_points(std / np.sqrt(rho))
    n, k = samples.n, len(moves)
    size = 8.0 * k * samples.data.size
    refuse_more_than_half(2.0 * size, f"data with {k} labels for each of {n} samples", ["fewer samples or outputs"])
    X = np.tile(samples.X, (k,) + (1,) * (samples.X.ndim - 1))
    Y = np.concatenate([samples.Y.reshape(n, -1) + move for move in moves]).reshape(k * n, *samples.Y.shape[1:])
    return model.samples(X, Y)


def check_linear(model: Model, samples: Samples) -> None:
    """Whether gradients are linear in the labels, that of the first sample at one θ; ModelError where they are not."""
    loss = getattr(getattr(model, "loss_function", None), "name", "squared")
    theta = model.init(rng=0)
    try:
        if loss != "squared":
            raise ArgumentError("not squared")
        X, Y = samples.X[:1], samples.Y[:1]
        plain, once, twice = (model.per_sample_gradients(theta, model.samples(X, Y + k), 0, 1)[0] for k in (0, 1, 2))
    except ArgumentError:
        raise ModelError(
            f"label_noise needs a squared loss, whose gradient is linear in the label, got {model!r}"
        ) from None
    scale = np.abs([plain, once, twice]).max()
    if np.abs(twice - 2.0 * once + plain).max() > SLACK * scale or np.abs(once - plain).max() == 0.0 < scale:
        raise ModelError(f"label_noise needs a loss whose gradient is linear in the label, got {model!r}")


def two_of(samples: Samples) -> tuple[np.ndarray, np.ndarray]:
    """X and Y of the first sample, and of the same one with other labels."""
    return np.repeat(samples.X[:1], 2, axis=0), np.concatenate([samples.Y[:1], samples.Y[:1] + 1.0])


def collapsed(kernels: Kernels, model: Model, samples: Samples, drawn: Samples) -> Kernels:
    """The increment of the per-sample factor over the points, by one pass over the samples that were `drawn`.

    As it was for a model whose kernels do not read X and Y from their arrays.
    """
    from sgdsde.sgd.label_noise_kernels import increment
    from sgdsde.sgd.population import reads_arrays

    n = drawn.n
    if not reads_arrays(model, *two_of(drawn)):
        return kernels
    outputs = samples.Y.shape[1] if samples.Y.ndim == 2 else 1
    inputs = samples.data.size // samples.n - outputs
    words = map(float, address(model.compiled().weighted, WEIGHTED))
    tail = [*drawn.numbers, *words, n, samples.n // n, inputs, outputs]
    fixed, per_path = kernels.work
    return kernels._replace(
        increment=increment,
        p=np.concatenate([kernels.p, tail]),
        work=(fixed + samples.n + n * (inputs + outputs + 1) + 2 * model.dim, per_path),
    )
