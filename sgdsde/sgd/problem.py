"""SGD: a model, data, a learning rate, a batch size and weight decay, and everything that follows from them at a θ."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.models.model import Model
from sgdsde.sgd import schedules
from sgdsde.sgd.evaluating import Evaluations
from sgdsde.sgd.label_noise import points, read_label_noise
from sgdsde.sgd.optimizers import HeavyBall, Optimizer
from sgdsde.sgd.population import read_data
from sgdsde.sgd.schedules import Schedule
from sgdsde.sgd.settings import check_sde, read_optimizer, read_sampling

if TYPE_CHECKING:
    from sgdsde.run.solution import Solution
    from sgdsde.sgd.continuous import SGDEquation
    from sgdsde.sgd.discrete import SGDRecursion
    from sgdsde.sgd.langevin import LangevinEquation

__all__ = ["SGD"]


class SGD(Evaluations):
    """Stochastic gradient descent θ' = (1 - 2ηγ)θ - ηĝ, ĝ the mean of ∇ℓ_i over a batch of S samples.

    Parameters
    ----------
    model : Model
        Such as `models.DeepLinear([64, 10, 10])`.
    X, Y : array_like
        Inputs (N, d_x) and targets (N, d_y), or (N,) where that is 1; finite. Copied, and promoted to float64. Or X is
        a law of the data, without Y: a `datasets.GaussianTeacher`, or for `models.Product` a `Population`. Discrete SGD
        then draws fresh samples at each step, and means are closed forms of the law, or estimates where the model has
        none (see `datasets.GaussianTeacher`).
    learning_rate : float or Schedule
        η > 0. Time is t = η·step; with a schedule (`schedules.cosine(…)`) it is t = Σ η_k, and `learning_rate`,
        `sigma2` and what follows from them are those of step 0: `at_step(k)` is the problem with the rate of step k.
    batch_size : int
        S in 1..N.
    gamma : float
        γ >= 0: the objective is L + γ‖θ‖², L the mean of ℓ_i. PyTorch's `weight_decay` is 2γ.
    replacement : bool
        Whether a batch may hold a sample twice. Without, the covariance of ĝ is smaller by ρ = (N - S)/(N - 1).
    sampling : {"with replacement", "without replacement", "epochs"}, optional
        In place of `replacement`. "epochs": the samples are shuffled, cut into N // S batches, and shuffled again; what
        is left over sits out an epoch. One batch has the law of one without replacement, but batches of an epoch are
        not independent, and the SDE, which has ρ, knows nothing of that.
    optimizer : HeavyBall, SVAG or Adam, optional
        What a step does with ĝ (`sgdsde.optimizers`); plain SGD without.
    label_noise : float or (d_y,) array_like, optional
        Standard deviation of fresh Gaussian noise on each label of a batch, in every step, for squared loss. Σ(θ), its
        factors and the charge laws have it in closed form: they are over the samples with every label moved to d_y + 1
        places, which `X`, `Y`, `per_sample_gradients` and the like then are. Without replacement the part of the labels
        is over ρ, so that 2σ²ρΣ is what a step has. The constant that it adds to the mean loss is not in `loss`. Not
        with all N samples in each batch.

    Raises
    ------
    ArgumentError, ShapeError
        Naming the argument, what it got and what it wanted.

    Examples
    --------
    >>> import numpy as np, sgdsde as sg
    >>> model = sg.models.DeepLinear([1, 1])
    >>> problem = sg.SGD(model, [[1.0], [2.0]], [[0.0], [2.0]], learning_rate=0.1, batch_size=1)
    >>> problem
    SGD(DeepLinear([1, 1]), 2 samples, learning_rate=0.1, batch_size=1, gamma=0)
    >>> problem.loss([1.0]), problem.gradient([1.0]), problem.sigma2
    (0.5, array([1.]), 0.05)
    >>> problem.factor([1.0])
    array([[ 0.70710678, -0.70710678]])
    """

    def __init__(
        self,
        model: Model,
        X: Any,
        Y: Any = None,
        *,
        learning_rate: float | Schedule,
        batch_size: int = 1,
        gamma: float = 0.0,
        replacement: bool = True,
        sampling: str | None = None,
        optimizer: Optimizer | None = None,
        label_noise: Any = None,
    ) -> None:
        if not isinstance(model, Model):
            raise ArgumentError(f"model must be a model such as models.DeepLinear([64, 10, 10]), got {model!r}")
        self.model, self.drawn, self.law = read_data(model, X, Y)
        self._read(learning_rate, batch_size, gamma, replacement, sampling, optimizer, label_noise)

    def _read(
        self,
        learning_rate: Any,
        batch_size: Any,
        gamma: Any,
        replacement: Any = True,
        sampling: Any = None,
        optimizer: Any = None,
        label_noise: Any = None,
    ) -> None:
        self.schedule = schedules.read(learning_rate)
        first = float(learning_rate(0)) if isinstance(learning_rate, Schedule) else learning_rate
        self.learning_rate = _check.positive("learning_rate", first)
        self.batch_size = _check.count("batch_size", batch_size, most=self.drawn.n if self.law is None else None)
        self.gamma = _check.number("gamma", gamma, least=0.0)
        self.sampling = read_sampling(sampling, _check.flag("replacement", replacement))
        if self.law is not None and not self.replacement:
            kind = type(self.law).__name__
            raise ArgumentError(f"replacement must be True for a {kind}: it has no end, so no sample comes twice")
        self.optimizer = read_optimizer(optimizer, self.sampling)
        self.label_noise = read_label_noise(label_noise, self.drawn, self.law)
        self.samples = self.drawn
        if self.label_noise is not None:
            self.samples = points(self.model, self.drawn, self.label_noise, self.rho)

    def __repr__(self) -> str:
        data = f"{self.drawn.n} samples" if self.law is None else repr(self.law)
        drawn = {"with replacement": "", "without replacement": ", replacement=False"}
        how = drawn.get(self.sampling, f", sampling={self.sampling!r}")
        how += "" if self.optimizer is None else f", optimizer={self.optimizer!r}"
        how += "" if self.label_noise is None else f", label_noise={_short(self.label_noise)}"
        rate = f"{self.learning_rate:g}" if self.schedule is None else repr(self.schedule)
        numbers = f"learning_rate={rate}, batch_size={self.batch_size}, gamma={self.gamma:g}"
        return f"SGD({self.model!r}, {data}, {numbers}{how})"

    def __reduce__(self) -> Any:
        data = (self.drawn.X, self.drawn.Y) if self.law is None else (self.law, None)
        return _rebuild, (self.model, *data, self._settings())

    def _settings(self) -> dict[str, Any]:
        rate = self.learning_rate if self.schedule is None else self.schedule
        settings = {"learning_rate": rate, "batch_size": self.batch_size, "gamma": self.gamma}
        more = {"sampling": self.sampling, "optimizer": self.optimizer, "label_noise": self.label_noise}
        return settings | more

    def replace(self, **changes: Any) -> SGD:
        """The same model and data with other numbers: ``problem.replace(learning_rate=0.01)``."""
        settings = self._settings()
        if "replacement" in changes:
            settings.pop("sampling")
        made = object.__new__(type(self))  # copy.copy would read the data anew
        vars(made).update(vars(self))
        unknown = set(changes) - {*settings, "replacement", "sampling"}
        if unknown:
            raise ArgumentError(f"replace takes {', '.join(settings)}, got {', '.join(sorted(unknown))}")
        made._read(**{**settings, **changes})
        return made

    def at_step(self, k: int) -> SGD:
        """The problem with the learning rate that the schedule has at step number k, constant."""
        k = _check.count("k", k, least=0)
        return self if self.schedule is None else self.replace(learning_rate=float(self.schedule(k)))

    # --- numbers ------------------------------------------------------------------------------------------------------

    @property
    def X(self) -> Any:
        """Inputs of the samples that means are over; a law that stands in their place."""
        return self.samples.X

    @property
    def Y(self) -> Any:
        """Targets of the samples that means are over; None for a law that stands in their place."""
        return self.samples.Y

    @property
    def n_samples(self) -> int | None:
        """N; None where a law of the data stands in place of samples."""
        return self.drawn.n or None

    @property
    def sigma2(self) -> float:
        """σ² = η/(2S), the strength of the noise of batches with replacement; `noise_scale` has the ρ.

        With heavy-ball momentum η is the effective rate η/(1 - β).
        """
        return self.effective_learning_rate / (2.0 * self.batch_size)

    @property
    def effective_learning_rate(self) -> float:
        """η, or η/(1 - β) with heavy-ball momentum: the step of plain SGD that moves about as far."""
        beta = self.optimizer.beta if isinstance(self.optimizer, HeavyBall) else 0.0
        return self.learning_rate / (1.0 - beta)

    @property
    def replacement(self) -> bool:
        """Whether a batch may hold a sample twice."""
        return self.sampling == "with replacement"

    @property
    def rho(self) -> float:
        """ρ, by which the covariance of ĝ is smaller without replacement: (N - S)/(N - 1); 1 with replacement."""
        n = self.drawn.n
        if self.replacement:
            return 1.0
        return (n - self.batch_size) / (n - 1) if n > 1 else 0.0

    @property
    def noise_scale(self) -> float:
        """σ²ρ: the covariance of the SDE's noise is 2σ²ρΣ."""
        return self.sigma2 * self.rho

    def loss(self, theta: Any) -> Any:
        """L(θ), the mean loss without weight decay: shape (...) for θ of shape (..., d), a float for one θ."""
        return self.model.loss(theta, self.drawn)

    # --- dynamics -----------------------------------------------------------------------------------------------------

    def sde(self, factor: Any = None, *, order: int = 1) -> SGDEquation:
        """The SDE dθ = -∇(L + γ‖θ‖²)dt + √(2σ²ρ) G(θ)dW (Itô), to be handed to `solve`; its `dt` defaults to η.

        Parameters
        ----------
        factor : str, (d, m) array_like or callable, optional
            G. By default the model's own: "per-sample" is matrix-free, m = N; "rank-one" (`Product`), m = 1. "gram":
            the symmetric square root Σ^{1/2} from the N × N Gram matrix, m = d. "cholesky": with a relative jitter of
            1e-12, m = d. "low-rank": from the eigenvalues of the Gram matrix, m = min(d, N - 1), or `sgd.LowRank(r)`
            with m = r and an error that `factor_loss` states. An array (d, m) is a constant G, a function θ -> (d, m)
            any other. All are multiplied by √(2σ²ρ). "gram", "cholesky", "low-rank" and functions are evaluated in
            Python, at each step of each path.
        order : {1, 2}
            2 adds -(η/4)∇‖∇L_γ‖², L_γ = L + γ‖θ‖², to the drift: expectations of smooth functions are then those of SGD
            up to O(η²) in place of O(η) at any fixed time (Q. Li, C. Tai, W. E, JMLR 20 (2019) 40, theorem 9). It costs
            a Hessian-vector product and a gradient more. It is no closer in the long run: the stationary variance of
            order 1 errs by O(η²) too, and by less.
        """
        from sgdsde.sgd.continuous import SGDEquation

        check_sde(self, order)
        return SGDEquation(self, factor, order)

    def langevin(self, s: float) -> LangevinEquation:
        """The Langevin equation dθ = -∇(L + γ‖θ‖²)dt + s dW, noise the same in every direction, for `solve`.

        What SGD would be if its noise knew nothing of the model. It does not keep to the level sets of a charge: dC has
        the martingale 2s θᵀA dW, and d⟨C⟩/dt = -4γ⟨C⟩ + s² Tr A, so that without decay and with Tr A = 0 the mean stays
        and ⟨C²⟩ grows at the rate 4s²⟨‖Aθ‖²⟩: C diffuses along the valley where SGD's law contracts it.

        Parameters
        ----------
        s : float
            >= 0; the covariance of the noise is s²·I·dt.
        """
        from sgdsde.sgd.langevin import LangevinEquation

        return LangevinEquation(self, s)

    def recursion(self) -> SGDRecursion:
        """Discrete SGD as the engine runs it: an equation of calculus "discrete", with the scheme in `.scheme`."""
        from sgdsde.sgd.discrete import SGDRecursion

        return SGDRecursion(self)

    def run(
        self,
        theta0: Any,
        n_steps: int,
        n_paths: int | None = None,
        rng: Any = None,
        t_eval: Any = None,
        observe: Any = None,
        track: Any = None,
        *,
        keep: str = "all",
        track_every: int = 1,
        path_index: Any = None,
        threads: int | None = None,
        executor: Executor | None = None,
        progress: Any = None,
        checkpoint: Any = None,
        checkpoint_every: float = 30.0,
        block_size: int | None = None,
        chunk_steps: int | None = None,
    ) -> Solution:
        """Discrete SGD: `n_steps` steps from `theta0`, along one path or many with batches of their own.

        Parameters
        ----------
        theta0 : (d,) or (n_paths, d) array_like
            One start for all paths, or one row for each.
        n_steps : int
        n_paths, rng, observe, track, keep, track_every, path_index, threads, executor, progress, checkpoint, \
checkpoint_every, block_size, chunk_steps
            As in `solve`. The batches of a path depend on the seed and on its number alone.
        t_eval : None, int, sequence or "steps"
            Times t to save: start and end; that many; these, each moved to the nearest step; every step.

        Returns
        -------
        Solution
            As from `solve`, on the times t = η·step (η_k added up with a schedule, η/l with `SVAG(l)`, η/(1 - β) with
            `HeavyBall(β)`). With an optimizer that remembers, y is its whole state, which begins with θ.
        """
        from sgdsde.run.integrating import integrate
        from sgdsde.sgd.settings import make_grid, make_start

        equation = self.recursion()
        grid = make_grid(self, n_steps)
        theta0 = make_start(self, theta0, n_paths, path_index)
        return integrate(
            equation,
            equation.scheme,
            grid,
            theta0,
            problem=self,
            n_paths=n_paths,
            rng=rng,
            t_eval=t_eval,
            keep=keep,
            observe=observe,
            track=track,
            track_every=track_every,
            path_index=path_index,
            threads=threads,
            executor=executor,
            progress=progress,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            block_size=block_size,
            chunk_steps=chunk_steps,
        )


def _short(std: Any) -> str:
    same = bool((std == std[0]).all())
    return f"{std[0]:g}" if same else f"[{', '.join(f'{one:g}' for one in std)}]"


def _rebuild(model: Any, X: Any, Y: Any, settings: dict[str, Any]) -> SGD:
    return SGD(model, X, Y, **settings)
