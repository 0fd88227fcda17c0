"""Discrete SGD as an equation of the engine: a recursion whose scheme is the model's own batch step."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde._errors import ModelError
from sgdsde.equation._equation import Kernels
from sgdsde.schemes import Aux, Scheme

__all__ = ["SGDRecursion"]


class BatchScheme(Scheme):
    """The scheme of one problem's recursion; it is pickled as the problem and made anew."""

    def __reduce__(self) -> Any:
        return _scheme_of, (self.extra["problem"],)


class SGDRecursion:
    """Discrete SGD of an `SGD` problem: no noise but the choice of batches, t = η·step, h = η. Run by `SGD.run`.

    Raises
    ------
    ModelError
        For a `Population`: there are no samples to draw.
    """

    calculus = "discrete"
    noise = "general"
    noise_dim = 0
    args: tuple[Any, ...] = ()

    def __init__(self, problem: Any) -> None:
        if problem.samples.n == 0:
            raise ModelError(
                f"discrete SGD draws samples, and {problem.X!r} has moments only: run problem.sde() with solve, "
                "or draw samples and give them as X, Y"
            )
        self.problem = problem
        self.model = problem.model
        self.dim = self.model.dim if problem.optimizer is None else problem.optimizer.size(self.model.dim)
        self.block = self.model.block

    def __repr__(self) -> str:
        return f"{self.problem!r}.recursion()"

    @property
    def scheme(self) -> Scheme:
        """The model's step, θ' = (1 - 2ηγ)θ - η·(batch mean of ∇ℓ_i), or an optimizer's, with the draw of batches."""
        return _scheme_of(self.problem)

    def kernels(self, *, correction: bool = False) -> Kernels:
        """p = [γ, 0, *q] and the model's data; the batch step calls neither increment nor correction."""
        samples = self.problem.samples
        made = self.model.compiled()
        p = np.concatenate([[self.problem.gamma, 0.0], samples.numbers])
        return Kernels(made.increment, made.correction, p, samples.data, (0, 0))

    def numbers(self) -> tuple[Any, ...]:
        """What a checkpoint knows this recursion by; its `repr` says the rest."""
        problem = self.problem
        schedule = () if problem.schedule is None else (problem.schedule.starts, problem.schedule.rates)
        return np.array([problem.gamma, problem.learning_rate]), *self.model.identity(problem.samples), *schedule


def _scheme_of(problem: Any) -> Scheme:
    optimizer, size, n = problem.optimizer, problem.batch_size, problem.samples.n
    step = problem.model.compiled().step
    fixed, per_path = problem.model.work(max(n, size))
    draw, draw_work = _draw(problem)
    batches, name, prepare = 1, "sgd", None
    if optimizer is not None:
        from sgdsde.sgd.steps import numbers

        batches, name, model_step = optimizer.batches, optimizer.name, step
        step, per_path = optimizer.kernel(), per_path + problem.model.dim

        def prepare(*_: Any) -> Any:
            return numbers(model_step, optimizer.numbers())

    return BatchScheme(
        name,
        step,
        calculus=("discrete",),
        strong={},
        weak={},
        work=lambda d, m: (fixed, per_path),
        aux=Aux(draw, lambda d, m: batches * size, lambda d, m: (draw_work, 0)),
        prepare=prepare,
        evaluations=f"{batches * size} sample gradients",
        reference="θ' = (1 - 2ηγ)θ - ηĝ",
        summary="stochastic gradient descent",
        extra={"problem": problem},
    )


def _draw(problem: Any) -> tuple[Any, int]:
    """The AUX kernel that draws the batches of a step, and its scratch."""
    from sgdsde.random.integers import subset_work
    from sgdsde.sgd import batches

    size, n = problem.batch_size, problem.samples.n
    two = problem.optimizer is not None and problem.optimizer.batches == 2
    if problem.sampling == "epochs":
        return batches.shuffled, n + subset_work(n)
    if problem.sampling == "with replacement":
        return batches.with_replacement, 0
    if size == n:
        return batches.every, 0
    return batches.two_without_replacement if two else batches.without_replacement, subset_work(size)
