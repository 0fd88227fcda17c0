"""Discrete SGD as an equation of the engine: a recursion whose scheme is the model's own batch step."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde._abi import STEP
from sgdsde._address import address
from sgdsde.equation._equation import Kernels
from sgdsde.models.product import Product
from sgdsde.schemes import Aux, Scheme
from sgdsde.sgd.label_noise import two_of
from sgdsde.sgd.population import check_arrays, fresh

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
        For a `Population` of moments alone: there is nothing to draw.
    """

    calculus = "discrete"
    noise = "general"
    noise_dim = 0
    args: tuple[Any, ...] = ()

    def __init__(self, problem: Any) -> None:
        self.problem = problem
        self._fresh = None if problem.law is None else fresh(problem.model, problem.law)
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
        problem, samples, end = self.problem, self.problem.drawn, []
        if self._fresh is not None:
            model, law = self._fresh
            samples = model.samples(*law.batch(problem.batch_size))._replace(data=np.empty(0))
        elif problem.label_noise is not None:
            check_arrays(self.model, *two_of(samples))
            size = problem.batch_size
            batch = self.model.samples(*(np.resize(a, (size, *a.shape[1:])) for a in (samples.X, samples.Y)))
            end = [*batch.numbers, size, problem.label_noise.size]
        made = self.model.compiled()
        p = np.concatenate([[problem.gamma, 0.0], samples.numbers, end])
        return Kernels(made.increment, made.correction, p, samples.data, (0, 0))

    def numbers(self) -> tuple[Any, ...]:
        """What a checkpoint knows this recursion by; its `repr` says the rest."""
        problem = self.problem
        schedule = () if problem.schedule is None else (problem.schedule.starts, problem.schedule.rates)
        return np.array([problem.gamma, problem.learning_rate]), *self.model.identity(problem.samples), *schedule


def _scheme_of(problem: Any) -> Scheme:
    optimizer, size = problem.optimizer, problem.batch_size
    step = problem.model.compiled().step
    fixed, per_path = problem.model.work(max(problem.drawn.n, size))
    draw, draw_work = _draw(problem)
    batches, name, rows = 1, "sgd", 1
    ends: list[np.ndarray] = []  # what the steps read at the end of `data`, the outermost last
    if problem.law is not None or problem.label_noise is not None:
        step, end, rows, more = _made_batches(problem)
        ends.append(end)
        fixed += more
    if optimizer is not None:
        from sgdsde.sgd.steps import numbers

        batches, name = optimizer.batches, optimizer.name
        ends.append(numbers(step, optimizer.numbers()))
        step, per_path = optimizer.kernel(), per_path + problem.model.dim

    def prepare(*_: Any) -> Any:
        return np.concatenate(ends)

    return BatchScheme(
        name,
        step,
        calculus=("discrete",),
        strong={},
        weak={},
        work=lambda d, m: (fixed, per_path),
        aux=Aux(draw, lambda d, m: batches * size * rows, lambda d, m: (draw_work, 0)),
        prepare=prepare if ends else None,
        evaluations=f"{batches * size} sample gradients",
        reference="θ' = (1 - 2ηγ)θ - ηĝ",
        summary="stochastic gradient descent",
        extra={"problem": problem},
    )


def _draw(problem: Any) -> tuple[Any, int]:
    """The AUX kernel that draws the batches of a step, and its scratch."""
    from sgdsde.random.integers import subset_work
    from sgdsde.sgd import batches

    if problem.law is not None or problem.label_noise is not None:
        return _draw_made(problem)
    size, n = problem.batch_size, problem.drawn.n
    two = problem.optimizer is not None and problem.optimizer.batches == 2
    if problem.sampling == "epochs":
        return batches.shuffled, n + subset_work(n)
    if problem.sampling == "with replacement":
        return batches.with_replacement, 0
    if size == n:
        return batches.every, 0
    return batches.two_without_replacement if two else batches.without_replacement, subset_work(size)


def _made_batches(problem: Any) -> tuple[Any, np.ndarray, int, int]:
    """The step that puts its batch together, what it reads at the end of `data`, rows of aux a sample, and scratch."""
    if type(problem.model) is Product:
        from sgdsde.sgd import population_product as kernels
    else:
        from sgdsde.sgd import population_kernels as kernels  # type: ignore[no-redef]

    d, size = problem.model.dim, problem.batch_size
    if problem.law is not None:
        model, law = fresh(problem.model, problem.law)
        outputs, inputs = law.V.shape
        return kernels.fresh_step, law.tail(model.compiled().step), law.normals, size * (inputs + outputs + 1) + d
    outputs = problem.label_noise.size
    inputs = problem.drawn.data.size // problem.drawn.n - outputs
    words = map(float, address(problem.model.compiled().step, STEP))
    tail = np.array([*problem.label_noise, inputs, outputs, problem.drawn.n, *words])
    more = size * (inputs + outputs + 1) + problem.drawn.numbers.size + 4 + d
    return kernels.noisy_step, tail, 1 + outputs, more


def _draw_made(problem: Any) -> tuple[Any, int]:
    """`_draw` for batches that are put together."""
    from sgdsde.random.integers import subset_work
    from sgdsde.sgd import population_kernels as kernels

    if problem.law is not None:
        return kernels.fresh, 0
    if problem.sampling == "epochs":
        return kernels.noisy_shuffled, problem.drawn.n + subset_work(problem.drawn.n)
    if problem.sampling == "with replacement":
        return kernels.noisy_with_replacement, 0
    return kernels.noisy_without_replacement, subset_work(problem.batch_size)
