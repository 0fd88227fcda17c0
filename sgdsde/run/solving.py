"""`solve`: the front door. Reads the arguments, binds the problem, chooses the scheme, hands over to `integrate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.equation._equation import Equation, Problem
from sgdsde.equation.structure import noise_structure
from sgdsde.run.grid import make_grid, time_span
from sgdsde.run.integrating import integrate
from sgdsde.run.solution import Solution
from sgdsde.schemes import Scheme, check, get_scheme

__all__ = ["integrate", "solve"]

DEFAULT_METHOD = {"ito": "euler-maruyama", "stratonovich": "heun"}


def solve(
    sde: Problem,
    t_span: Any,
    y0: Any,
    *,
    method: str | None = None,
    goal: str | None = None,
    dt: Any = None,
    n_paths: int | None = None,
    rng: Any = None,
    t_eval: Any = None,
    args: Sequence[Any] | None = None,
    keep: str = "all",
    observe: Any = None,
    track: Any = None,
    track_every: int = 1,
    save_noise: bool = False,
    dW: Any = None,
    brownian: Any = None,
    project: Any = None,
    step_size: Any = None,
    path_index: Any = None,
    threads: int | None = None,
    executor: Executor | None = None,
    progress: Any = None,
    checkpoint: Any = None,
    checkpoint_every: float = 30.0,
    block_size: int | None = None,
    chunk_steps: int | None = None,
) -> Solution:
    """Integrate a stochastic differential equation along one path or many.

    Parameters
    ----------
    sde : SDE
        Or anything that binds to an equation, such as `SGD(...).sde()`.
    t_span : (t0, t1)
        With t0 < t1.
    y0 : (d,) or (n_paths, d) array
        One start for all paths, or one row for each.
    method : str, optional
        Name of a scheme (`sgdsde.methods`). By default "euler-maruyama" for Itô and "heun" for Stratonovich equations.
        "auto" measures the noise around y0 and takes the method of the highest order for the `goal`.
    goal : {"strong", "weak", "charge"}, optional
        With method="auto": paths (the default), means and laws, or charges; `choose_method` says which and why.
    dt : float or (n_steps,) array
        Step length. Where it does not divide t1 - t0, the last step is shorter. Or the length of every step, which add
        up to t1 - t0. The SDE of an `SGD` problem defaults to its learning rate, or to the steps of its schedule.
    n_paths : int, optional
        Number of independent paths; None runs one and drops the path axis from the results.
    rng : int, None, numpy.random.SeedSequence or numpy.random.Generator
        An integer in [0, 2**64) is the key itself; anything else draws one. ``rng=sol.seed`` repeats a run to the bit.
        Path i is the same for any `n_paths`; two runs with one key share their noise (common random numbers).
    t_eval : None, int, sequence or "steps"
        Times to save: start and end; that many equal times; these; every step. Times between steps are reached by a
        Brownian bridge and a step of their own, which changes nothing on the grid.
    args : sequence, optional
        Replaces the arguments of the equation's functions, without compiling anew.
    keep : {"all", "final", "stats"}
        Every path at every saved time; every path at the end; or only moments over paths, whose memory does not grow
        with `n_paths`.
    observe, track : thing, sequence or dict of things
        What to compute at the saved times (functions f(t, y, *args), charges, …), and what to accumulate along the
        path (`ChargeLaw`, …), every `track_every` steps.
    save_noise : bool
        Keep the Brownian increments; given back as `dW`, they reproduce y to the bit. With `brownian=` the iterated
        integrals and space-time areas that a method takes beside them come from that path, and are not kept: there the
        same `Brownian` reproduces y, not `dW`.
    dW : (n_paths, n_steps, m) array, optional
        Increments to use instead of random ones; (n_steps, m) for a single path. What a method needs beyond them
        (iterated integrals, …) is drawn given dW, with `rng`.
    brownian : Brownian, optional
        A path, or as many as the run has, that gives the increments and all else of the Brownian motion that the method
        needs, consistent over grids: two runs with different dt follow the same path. Drawn step by step, not stored.
        Its paths are found by number; dt divides t1 - t0, by a power of two where the method needs iterated integrals.
    project : function or projection, optional
        Where the state must be: f(t, y, *args) -> y is put in place of the state after every step (never inside a
        step, where the functions of the equation see states of the method's own); or an object such as
        `OrbitProjection`. It changes the method: measure with `strong_order(..., project=)`.
    step_size : "auto" or function, optional
        f(t, y, *args) in (0, 1], the part of dt that a step from there may take: each path goes through a step of the
        grid in steps of its own. A length follows from the state at its start alone and no step is taken back, so the
        noise is exact; rejecting steps by an error estimate would bias it. "auto" asks the model.
    path_index : int or sequence of ints, optional
        Run only these paths of the ensemble; they equal those of the whole run to the bit.
    threads : int, optional
        Threads to use; by default every core. Results do not depend on it.
    executor : concurrent.futures.Executor, optional
        Run on this instead: processes, a cluster. Results do not depend on it.
    progress : bool or callable
        A line on standard error, or a function of the fraction done.
    checkpoint : path, optional
        A file, written every `checkpoint_every` seconds and at the end; if it is there the run goes on from it (with
        its seed, where `rng` is None). A file of another run is refused.
    block_size, chunk_steps : int, optional
        Paths side by side (a power of two, at most 256) and steps per call of the engine. Results do not depend on
        them.

    Returns
    -------
    Solution
        Ctrl-C returns what is done, with `success` False.

    Raises
    ------
    ArgumentError, ShapeError, ModelError
        In Python, before anything is compiled.
    TooLargeError
        When more than half of the free memory would be kept.

    Warns
    -----
    DivergenceWarning
        When paths left the finite numbers; they are stopped, dated and counted, and means are NaN from there on.

    Examples
    --------
    >>> import sgdsde as sg
    >>> def drift(t, y, a):
    ...     return (-a * y[0],)
    >>> def diffusion(t, y, a):
    ...     return (0.5 * y[0],)
    >>> sde = sg.SDE(drift, diffusion, dim=1, noise="diagonal", args=(1.0,))
    >>> sol = sg.solve(sde, (0, 1), [1.0], method="milstein", dt=1e-2, n_paths=4, rng=0)
    >>> sol.y.shape
    (4, 2, 1)
    """
    t0, t1 = time_span(t_span)
    if isinstance(sde, type) or not isinstance(sde, Problem):
        raise ArgumentError(f"sde must be an SDE or the .sde() of an SGD problem, got {_check.show(sde)}")
    if args is not None and (isinstance(args, str) or not isinstance(args, Sequence)):
        raise ArgumentError(f"args must be a tuple of the functions' extra arguments, got {_check.show(args)}")
    start = _check.array("y0", y0)
    rows = start.ndim == 2 and len(start) > 0 and start.shape[1] == getattr(sde, "dim", start.shape[1])
    equation = sde.bind(t0, start[0] if rows else np.atleast_1d(start), args)
    if dt is None:
        dt = getattr(equation, "default_dt", None)
        dt = dt(t0, t1) if callable(dt) else dt
        if dt is None:
            raise ArgumentError("dt must be given: the step length, in units of t")
    grid = make_grid(t0, t1, _check.positive("dt", dt) if np.ndim(dt) == 0 else dt)
    first = np.atleast_2d(start)[0]
    if method == "auto":
        from sgdsde.run.choosing import choose_for

        choice, noise = choose_for(equation, first, t0, "strong" if goal is None else goal)
        scheme = get_scheme(choice.method)
    else:
        if goal is not None:
            raise ArgumentError(f'goal must be None unless method="auto", got goal={goal!r} with method={method!r}')
        scheme = get_scheme(method if method is not None else DEFAULT_METHOD[equation.calculus])
        noise = noise_for(scheme, equation, t0, first)
    return integrate(
        equation,
        scheme,
        grid,
        start,
        problem=sde,
        noise=noise,
        n_paths=n_paths,
        rng=rng,
        t_eval=t_eval,
        keep=keep,
        observe=observe,
        track=track,
        track_every=track_every,
        save_noise=save_noise,
        dW=dW,
        brownian=brownian,
        project=project,
        step_size=step_size,
        path_index=path_index,
        threads=threads,
        executor=executor,
        progress=progress,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        block_size=block_size,
        chunk_steps=chunk_steps,
    )


def noise_for(scheme: Scheme, equation: Equation, t0: float, y0: np.ndarray) -> str:
    """The noise kind the scheme treats the equation as: the declared one, measured where the scheme relies on it.

    A kind that the scheme does not take is taken as a more special one that it does, where that is what is measured:
    constant columns are additive noise whatever they were called.
    """
    kind = equation.noise
    takes = kind in scheme.strong and equation.calculus in scheme.calculus
    if takes and (kind in ("general", "scalar") or not isinstance(scheme.step, Mapping)):
        return kind
    if equation.calculus == "discrete":
        check(scheme, kind, equation.calculus)
        return kind
    found = noise_structure(equation, y0, t0)
    holds = {"additive": found.additive, "diagonal": found.diagonal, "commutative": found.commutative}
    if not holds.get(kind, True):
        raise ArgumentError(
            f"noise was declared {kind!r}, and method {scheme.name!r} relies on it, but it is measured to be "
            f"{found.kind!r}: {found.witness}; declare noise='general', as a (d, m) matrix, and choose a method for it"
        )
    if not takes:
        special = [one for one, true in holds.items() if true and one in scheme.strong]
        if equation.calculus not in scheme.calculus:  # only additive noise has one law in both calculi
            special = [one for one in special if one == "additive"]
        kind = next(iter(special), kind)
    check(scheme, kind, equation.calculus)
    return kind
