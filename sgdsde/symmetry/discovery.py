"""Find the symmetries of a model on data: every generator Aθ + b that moves no sample's loss, and their algebra."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.algebra import Affine, Generator
from sgdsde.models.model import Model
from sgdsde.random.stream import key_from
from sgdsde.run.blas import one_blas_thread
from sgdsde.symmetry._lie_algebra import closure, structure
from sgdsde.symmetry._lie_basis import Span
from sgdsde.symmetry._lie_search import Found, action, errors, look, outside, probes
from sgdsde.symmetry._lie_states import States
from sgdsde.symmetry.charges import as_problem
from sgdsde.symmetry.discovery_report import Discovery, places_named

__all__ = ["discover_symmetries"]

MOST_DECLARED = 1000


def discover_symmetries(
    problem: Any,
    X: Any = None,
    Y: Any = None,
    *,
    search: str = "auto",
    redraw: Any = None,
    tolerance: float = 1e-7,
    rng: Any = 0,
) -> Discovery:
    """A basis of all J(θ) = Aθ + b with g_i(θ)·J(θ) = 0 for every sample and every state, and the algebra they make.

    Parameters
    ----------
    problem : SGD or Model
        A problem, or a model with its data in `X` and `Y`. Only gradients and losses of single samples are used, and
        the shapes of the model's arrays; what the model declares is compared with what is found.
    X, Y : array_like, optional
        Data of a model.
    search : {"auto", "general", "structured"}
        "general" finds all A (symmetric, antisymmetric, and neither) with their b. Its unknowns are d + 1 times the
        number of directions that the gradients at a state leave, at most 6000. "structured" finds the matrices
        B that act between neighbouring arrays (W ↦ -BW, U ↦ UB, each side on its own), those on the two sides of one
        array, and diagonal A, for models of any size; hidden layers wider than about 25 are searched for diagonal
        B alone, and `skipped` says so. "auto" is the general one up to 128 components where it is not too large.
    redraw : None, "halves" or (X, Y), optional
        Other data on which to try again. "halves": the search is also made on half of the samples alone. (X, Y): a new
        draw; `generators` are then those that hold on both. `fragile` has those which one part of the data has and
        another part breaks: they say that the data are few or special, not that the model is symmetric.
    tolerance : float
        A singular value below this times the largest is zero (`tolerance**1.5` where conditions are gradients as they
        are). 1e-7 suits gradients in double precision; for gradients with a relative error ε take about 10√ε.
    rng : int or numpy.random.Generator
        Of the random states: normal, half, once and twice the size of `model.init`.

    Returns
    -------
    Discovery
        It prints itself.

    Raises
    ------
    TooLargeError
        The general search has too many unknowns.
    ArgumentError, ModelError

    Notes
    -----
    States are added until the number of solutions stops changing twice. What no sample's loss depends on (weights of
    inputs that are always zero; the common shift of softmax outputs) is set apart first, for each such direction v
    makes d generators θ ↦ v(cᵀθ) that mean nothing. Every generator found is checked at new states, on all samples,
    with the finite group elements e^{±λA} on the losses. The algebra is named from its brackets: gl(h) for two linear
    layers, so(h,h) for `models.Product` (d_x = d_y = 1), abelian(h) for the rescalings of h ReLU units.

    Costs d + 1 and some more passes over the per-sample gradients, each with a QR of N × d, and one singular value
    decomposition of the size of the unknowns.

    Examples
    --------
    >>> import numpy as np, sgdsde as sg
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.standard_normal((8, 2)), rng.standard_normal((8, 2))
    >>> found = discover_symmetries(sg.models.DeepLinear([2, 2, 2]), X, Y)
    >>> found.type, found.dim, len(found.symmetric), len(found.antisymmetric)
    ('gl(2)', 4, 3, 1)
    >>> found.symmetric[0]
    Generator('B[0,0]', dim=8, symmetric: [0:4] Sandwich(2, 2) W -> L W, [4:8] Sandwich(2, 2) W -> W R)
    """
    problem = _as_problem(problem, X, Y)
    search = _check.choice("search", search, ("auto", "general", "structured"))
    tolerance = _check.positive("tolerance", tolerance)
    key = key_from(rng)
    tried = None if redraw is None else _redrawn(problem, redraw, np.random.default_rng([key, 1]))
    if tried is not None and not isinstance(redraw, str):
        problem, tried = tried, problem
    states = States(problem, np.random.default_rng([key, 0]))
    probe = probes(problem, states)
    declared = _declared(problem.model)
    fragile: list[Generator | Affine] = []
    with one_blas_thread():
        found = look(states, declared, search, tolerance, probe)
        if tried is not None:
            own = States(tried, np.random.default_rng([key, 2]))
            fragile = outside(found, look(own, declared, search, tolerance, probe), probe)
        return _report(states, found, declared, fragile, probe, tolerance)


def _report(
    states: States, found: Found, declared: Mapping[str, Any], fragile: list[Any], probe: np.ndarray, tolerance: float
) -> Discovery:
    held: list[Generator | Affine] = []
    failed: list[Generator | Affine] = []
    tangent, finite = 0.0, None
    named = _named(found, declared, probe)
    for a, (off, moved) in zip(named, errors(states, named), strict=True):
        good = off <= 0.1 * tolerance and (moved is None or moved <= tolerance)
        (held if good else failed).append(a)
        if good:
            tangent = max(tangent, off)
            finite = moved if finite is None else max(finite, moved or 0.0)
    linear = [a for a in held if not _is_translation(a)]
    algebra = structure(linear, probe, found.inert.remove)
    missing, reached = _compared(found, linear, declared, algebra, probe)
    return Discovery(
        generators=tuple(held),
        dead=tuple(int(i) for i in found.inert.dead),
        dead_names=places_named(states.problem.model, found.inert.dead),
        type=algebra.name,
        structure=algebra,
        gap=found.gap,
        complete=found.complete,
        skipped=tuple(found.skipped),
        declared=tuple(declared),
        declared_missing=missing,
        extra=tuple(reached),
        fragile=tuple(fragile),
        failed=tuple(failed),
        tangent=tangent,
        finite=finite,
        dim_theta=states.dim,
        n_states=found.n_states,
        n_samples=getattr(states.problem, "n_samples", None),
        model=repr(states.problem.model),
    )


def _is_translation(a: Generator | Affine) -> bool:
    return isinstance(a, Affine) and not a.linear.parts


def _named(found: Found, declared: Mapping[str, Any], probe: np.ndarray) -> list[Generator | Affine]:
    """Generators, then translations, with the declared name where there is one, else numbered."""
    known = [(name, a, action(a, found.inert, probe)) for name, a in declared.items()]
    out: list[Generator | Affine] = []
    numbers: dict[str, int] = {}
    for a in found.generators:
        own = action(a, found.inert, probe)
        name = next((n for n, b, acts in known if not _is_translation(b) and _parallel(own, acts)), None)
        if name is None:
            numbers[a.name] = numbers.get(a.name, 0) + 1
            name = f"{a.name or 'A'} #{numbers[a.name]}"
        out.append(a.named(name))
    for k, v in enumerate(found.translations):
        same = [n for n, b, _ in known if _is_translation(b) and _parallel(v.shift, b.shift)]
        out.append(v.named(same[0] if same else f"translation #{k + 1}"))
    return out


def _parallel(a: np.ndarray, b: np.ndarray) -> bool:
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return size > 0.0 and abs(abs(float(a @ b)) / size - 1.0) < 1e-10


def _compared(
    found: Found, linear: list[Any], declared: Mapping[str, Any], algebra: Any, probe: np.ndarray
) -> tuple[tuple[str, ...], list[Any]]:
    """Declared names that were not found, and generators found beyond what the declared ones generate."""
    inert = found.inert
    acts = np.array([action(a, inert, probe) for a in linear]).reshape(len(linear), probe.size)
    span, still, reached = Span(probe.size), Span(inert.dim), Span(inert.dim)
    for row in acts:
        span.add(row)
    still.rows = inert.basis()
    reached.rows = np.eye(inert.dim)[inert.dead]
    missing, inside = [], []
    for name, a in declared.items():
        if _is_translation(a):
            known = still.rest(a.shift)[1] <= 1e-6
            reached.add(a.shift)
        else:
            own = action(a, inert, probe)
            known = span.rest(own)[1] <= 1e-6
            if known and len(linear):
                inside.append(np.linalg.lstsq(acts.T, own, rcond=None)[0])
        if not known:
            missing.append(name)
    coordinates = Span(len(linear))
    if inside:
        closed = algebra.closed and algebra.constants.size
        for c in closure(algebra.constants, np.array(inside)) if closed else np.array(inside):
            coordinates.add(c)
    extra = [a for k, a in enumerate(linear) if coordinates.add(np.eye(len(linear))[k])]
    return tuple(missing), extra + [v for v in found.translations if reached.add(v.shift)]


def _as_problem(problem: Any, X: Any, Y: Any) -> Any:
    if isinstance(problem, Model):
        from sgdsde.sgd import SGD

        if X is None:
            raise ArgumentError("X must be given with a model: symmetries are those of every sample's loss")
        return SGD(problem, X, Y, learning_rate=1.0)
    if X is not None or Y is not None:
        raise ArgumentError("X and Y must be left out with a problem, which has its own; give them with a model")
    return as_problem(problem, "per_sample_gradients")


def _redrawn(problem: Any, redraw: Any, random: np.random.Generator) -> Any:
    """The problem on half of its samples, or on its own and new ones together."""
    n = getattr(problem, "n_samples", None)
    if not isinstance(problem.model, Model) or n is None:
        raise ArgumentError("redraw needs an SGD problem with samples")
    from sgdsde.sgd import SGD

    X, Y = np.asarray(problem.X), np.asarray(problem.Y)
    if isinstance(redraw, str):
        _check.choice("redraw", redraw, ("halves",))
        if n < 2:
            raise ArgumentError("redraw='halves' needs at least two samples")
        half = np.sort(random.permutation(n)[: n // 2])
        return SGD(problem.model, X[half], Y[half], learning_rate=1.0)
    if not isinstance(redraw, (tuple, list)) or len(redraw) != 2:
        raise ArgumentError(f"redraw must be 'halves' or a pair (X, Y), got {_check.show(redraw)}")
    more = problem.model.samples(*redraw)
    both = (np.concatenate([X, more.X]), np.concatenate([Y, more.Y]))
    return SGD(problem.model, *both, learning_rate=1.0)


def _declared(model: Any) -> dict[str, Generator | Affine]:
    """What the model says of itself."""
    found: dict[str, Generator | Affine] = {}
    if hasattr(model, "symmetries"):
        found |= dict(islice(model.symmetries().items(), MOST_DECLARED))
    return found
