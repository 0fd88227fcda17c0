"""Hypothesis strategies: models, data, SGD problems, symmetry generators, states, and all of them together.

Bounds keep condition numbers known, so that the tolerances of the laws mean something: entries are zero or at most 3 in
size and at least about 1e-3, N <= 8 samples, d <= 30 parameters, |λ|‖A‖ <= 2. Half of the arrays hold quarters (they
shrink to something readable, and hit what cancels), half are uniform random numbers from a seed.

Needs hypothesis: install sgdsde[testing].
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from sgdsde._errors import ArgumentError
from sgdsde.algebra import Generator
from sgdsde.models import MLP, DeepLinear, DiagonalLinear, Model, Population, Product, RadialNetwork, ScaleInvariant
from sgdsde.models.losses import squared
from sgdsde.models.naming import charged
from sgdsde.sgd import SGD
from sgdsde.sgd.optimizers import SVAG

try:
    st: Any = import_module("hypothesis.strategies")
    arrays: Any = import_module("hypothesis.extra.numpy").arrays
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "hypothesis":
        raise
    raise ModuleNotFoundError(
        "sgdsde.testing.strategies needs hypothesis, which is not installed: install sgdsde[testing]", name="hypothesis"
    ) from None

__all__ = [
    "Case", "cases", "data", "generators", "group_parameters", "models", "numbers", "populations", "problems",
    "relu_networks", "rotations", "samplers", "scale_invariant_networks", "states", "symmetric_matrices",
]  # fmt: skip

LARGEST = 3.0
MOST_SAMPLES, MOST_PARAMETERS, REACH = 8, 30, 2.0
QUARTERS = 4


class Case(NamedTuple):
    """What a law is about: `law(*case)`."""

    problem: SGD
    generator: Generator
    theta: np.ndarray


def numbers(shape: int | tuple[int, ...], largest: float = LARGEST) -> Any:
    """Arrays of a shape with entries in ±largest."""
    quarters = st.integers(-QUARTERS * 3, QUARTERS * 3).map(lambda k: k * largest / (QUARTERS * 3))
    random = st.builds(_random, _seeds(), st.just((shape, largest)))
    return st.one_of(arrays(np.float64, shape, elements=quarters), random)


def _seeds() -> Any:
    return st.integers(0, 2**32 - 1)


def _random(seed: int, what: tuple[Any, float]) -> np.ndarray:
    rng = np.random.default_rng(seed)
    shape, largest = what
    size = rng.choice([1.0, 1.0, 0.3, 0.05])  # all of it large, or all of it small
    return largest * size * rng.uniform(-1.0, 1.0, shape)


@st.composite
def models(draw: Any, depths: tuple[int, ...] = (2, 3, 4), products: bool = True) -> Model:
    """`DeepLinear` of these depths with d <= 30, and `Product` of width 1..3; the loss ‖r‖², ½‖r‖² or 2‖r‖²."""
    depth, scale = draw(st.sampled_from(depths)), draw(_scales())
    if products and draw(st.integers(0, 2)) == 0:
        return Product(draw(st.integers(1, 3)), depth, scale)
    return draw(_networks((depth,), lambda dims: DeepLinear(dims, scale)))


@st.composite
def relu_networks(draw: Any, depths: tuple[int, ...] = (2, 3)) -> MLP:
    """`MLP` with relu or leaky relu, with or without biases, d <= 30; squared loss.

    Slopes are 1/2 and 1/8, so that a unit at its kink is there exactly, in whatever order its inputs are added up.
    """
    slope, biases = draw(st.sampled_from([None, 0.5, 0.125])), draw(st.booleans())
    kind = {"activation": "relu"} if slope is None else {"activation": "leaky_relu", "slope": slope}
    return draw(_networks(depths, lambda dims: MLP(dims, biases=biases, scale=1.0, **kind)))


@st.composite
def scale_invariant_networks(draw: Any, depths: tuple[int, ...] = (1, 2, 3)) -> ScaleInvariant:
    """`ScaleInvariant`, divided by one norm or by that of each layer, d <= 30."""
    norm, scale = draw(st.sampled_from(["total", "layers"])), draw(_scales())
    return draw(_networks(depths, lambda dims: ScaleInvariant(dims, norm, scale)))


def _scales() -> Any:
    return st.sampled_from([1.0, 0.5, 2.0])


@st.composite
def _networks(draw: Any, depths: tuple[int, ...], make: Any) -> Any:
    """A network of one of these depths, of widths 1..5 and with d <= 30."""
    depth = draw(st.sampled_from(depths))
    dims = draw(st.lists(st.integers(1, 5), min_size=depth + 1, max_size=depth + 1))
    while (made := make(dims)).dim > MOST_PARAMETERS:
        dims[int(np.argmax(dims))] -= 1
    return made


@st.composite
def data(draw: Any, model: Model, min_samples: int = 1, max_samples: int = MOST_SAMPLES) -> tuple[Any, Any]:
    """X (N, n_in) and Y (N, n_out) for a model of this package with the squared loss; for another write a strategy."""
    if isinstance(model, (DeepLinear, MLP, RadialNetwork, ScaleInvariant)) and _squared(model):
        n_in, n_out = model.dims[0], model.dims[-1]
    elif isinstance(model, (Product, DiagonalLinear)):
        n_in, n_out = getattr(model, "n_inputs", 1), 1
    else:
        raise ArgumentError(f"data must be given for {model!r}: a strategy of pairs (X, Y)")
    n = draw(st.integers(min_samples, max_samples))
    return draw(numbers((n, n_in))), draw(numbers((n, n_out)))


def _squared(model: Any) -> bool:
    return getattr(model, "loss_function", squared) is squared


_data_of = data  # `problems` has an argument of that name


@st.composite
def populations(draw: Any) -> Population:
    """Laws of the data of a `Product`: uw-label and uw-gauss, of any target and noise."""
    from sgdsde.models import uw_gauss, uw_label

    k, s = draw(numbers(2))
    return draw(st.sampled_from([uw_label, uw_gauss]))(float(k), abs(float(s)))


@st.composite
def problems(
    draw: Any,
    model: Any = None,
    data: Any = None,
    *,
    min_samples: int = 1,
    max_samples: int = MOST_SAMPLES,
    gamma: Any = None,
    learning_rate: Any = None,
    replacement: Any = None,
    max_batches: int = 512,
    sampler: Any = None,
) -> SGD:
    """SGD problems: η in 0.001..0.3, γ = 0 or up to 0.5, S in 1..N, with replacement or without.

    Parameters
    ----------
    model, gamma, learning_rate, replacement : strategy or value, optional
    data : strategy or pair (X, Y), optional
        Needed for a model of one's own. A `Population` alone for X and Y.
    min_samples, max_samples : int
    max_batches : int
        S is lowered until no more batches than this can be drawn.
    sampler : strategy or dict, optional
        `sampling` and `optimizer` of `SGD`, in place of `replacement`: `samplers()`.
    """
    made = _drawn(draw, model, models())
    pair = _drawn(draw, data, _data_of(made, min_samples, max_samples) if data is None else None)
    X, Y = (pair, None) if isinstance(pair, Population) else pair
    n = 0 if Y is None else len(Y)
    how = _drawn(draw, sampler, st.just({}))
    again = True if not n else _drawn(draw, replacement, st.booleans())
    if "sampling" in how:
        again = how["sampling"] == "with replacement"
    else:
        how = {**how, "replacement": again}
    size = draw(st.integers(1, max(n, 1)))
    while (n**size if again else math.comb(n, size)) > max_batches:
        size -= 1
    return SGD(
        made, X, Y, learning_rate=_drawn(draw, learning_rate, st.floats(1e-3, 0.3)), batch_size=size,
        gamma=_drawn(draw, gamma, st.one_of(st.just(0.0), st.floats(1e-3, 0.5))), **how,
    )  # fmt: skip


@st.composite
def symmetric_matrices(draw: Any, n: int) -> np.ndarray:
    """B = 1, a diagonal B, or any symmetric B, (n, n), not zero."""
    kind = draw(st.sampled_from(["identity", "diagonal", "full"]))
    if kind == "identity":
        return np.eye(n)
    entries = draw(numbers(n if kind == "diagonal" else (n, n)).filter(np.any))
    B = np.diag(entries) if kind == "diagonal" else (entries + entries.T) / 2
    return B if B.any() else np.eye(n)


@st.composite
def generators(draw: Any, model: Model, dense: Any = None) -> Generator:
    """Symmetric generators of a model's symmetry, not zero: structured, or the same as a dense matrix.

    For a `DeepLinear`: of any symmetric B at each hidden layer, added up. For others: sums of the symmetric ones among
    `model.symmetries()`.
    """
    if isinstance(model, DeepLinear):
        used = draw(st.sets(st.integers(1, model.depth - 1), min_size=1))
        parts = [model.generator(draw(symmetric_matrices(model.dims[layer])), layer) for layer in sorted(used)]
    else:
        known = list(charged(model.symmetries()).values())
        if not known:
            raise ArgumentError(f"model must declare a symmetric generator, got {model!r}")
        factors = draw(numbers(len(known)).filter(np.any))
        parts = [float(c) * a for c, a in zip(factors, known, strict=True) if c]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    total = total if total.norm > 0 else next(iter(charged(model.symmetries()).values()))
    return Generator.from_matrix(total.matrix) if _drawn(draw, dense, st.booleans()) else total.named("drawn")


def states(model: Model) -> Any:
    """θ (d,) with entries in ±3, not zero."""
    return numbers(model.dim).filter(np.any)


def group_parameters(generator: Generator) -> Any:
    """λ with |λ|‖A‖ <= 2."""
    reach = REACH / generator.norm if generator.norm > 0 else REACH
    return st.floats(-1.0, 1.0).map(lambda c: c * reach)


@st.composite
def samplers(draw: Any, most: int = 8) -> dict[str, Any]:
    """Settings of `SGD`: how batches are drawn, and plain SGD or SVAG(l), l <= most."""
    optimizer = draw(st.one_of(st.none(), st.builds(SVAG, st.integers(1, most))))
    kinds = ["with replacement", "without replacement"] + ["epochs"] * (optimizer is None)
    return {"sampling": draw(st.sampled_from(kinds)), "optimizer": optimizer}


def rotations(m: int) -> Any:
    """Orthogonal matrices (m, m), of either determinant."""
    return _seeds().map(lambda seed: np.linalg.qr(np.random.default_rng(seed).standard_normal((m, m)))[0])


@st.composite
def cases(draw: Any, model: Any = None, data: Any = None, **settings: Any) -> Case:
    """A problem, a symmetric generator of its symmetry, and a state: what the laws take, `law(*case)`.

    Parameters
    ----------
    model, data, settings : as in `problems`
        Of a model with `symmetries()`.

    Examples
    --------
    >>> from hypothesis import given, settings
    >>> import sgdsde as sg
    >>> @settings(max_examples=5, database=None)
    ... @given(cases(model=sg.models.DeepLinear([2, 2, 1])))
    ... def test_my_model(case):
    ...     sg.testing.assert_discrete_law(*case)
    >>> test_my_model()
    """
    problem = draw(problems(model, data, **settings))
    return Case(problem, draw(generators(problem.model)), draw(states(problem.model)))


def _drawn(draw: Any, given: Any, default: Any) -> Any:
    """A value, or what a strategy gives."""
    if given is None:
        given = default
    return draw(given) if isinstance(given, st.SearchStrategy) else given
