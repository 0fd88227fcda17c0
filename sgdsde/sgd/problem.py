"""SGD: a model, data, a learning rate, a batch size and weight decay, and everything that follows from them at a θ."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.models.model import Model
from sgdsde.sgd.factors import leak, read_factor

if TYPE_CHECKING:
    from sgdsde.run.solution import Solution
    from sgdsde.sgd.continuous import SGDEquation
    from sgdsde.sgd.discrete import SGDRecursion

__all__ = ["SGD"]


class SGD:
    """Stochastic gradient descent θ' = (1 - 2ηγ)θ - ηĝ, ĝ the mean of ∇ℓ_i over a batch of S samples.

    Parameters
    ----------
    model : Model
        Such as `models.DeepLinear([64, 10, 10])`.
    X, Y : array_like
        Inputs (N, d_x) and targets (N, d_y), or (N,) where that is 1; finite. Copied, and promoted to float64. For
        `models.Product` X may be a `Population`, without Y.
    learning_rate : float
        η > 0. Time is t = η·step.
    batch_size : int
        S in 1..N.
    gamma : float
        γ >= 0: the objective is L + γ‖θ‖², L the mean of ℓ_i. PyTorch's `weight_decay` is 2γ.
    replacement : bool
        Whether a batch may hold a sample twice. Without, the covariance of ĝ is smaller by ρ = (N - S)/(N - 1).

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
        learning_rate: float,
        batch_size: int = 1,
        gamma: float = 0.0,
        replacement: bool = True,
    ) -> None:
        if not isinstance(model, Model):
            raise ArgumentError(f"model must be a model such as models.DeepLinear([64, 10, 10]), got {model!r}")
        self.model = model
        self.samples = model.samples(X, Y)
        self.learning_rate = _check.positive("learning_rate", learning_rate)
        self.batch_size = _check.count("batch_size", batch_size, most=self.samples.n or None)
        self.gamma = _check.number("gamma", gamma, least=0.0)
        self.replacement = _check.flag("replacement", replacement)
        if not self.samples.n and not self.replacement:
            raise ArgumentError("replacement must be True for a Population: it has no end, so no sample comes twice")

    def __repr__(self) -> str:
        data = f"{self.samples.n} samples" if self.samples.n else repr(self.samples.X)
        drawn = "" if self.replacement else ", replacement=False"
        return (
            f"SGD({self.model!r}, {data}, learning_rate={self.learning_rate:g}, batch_size={self.batch_size}, "
            f"gamma={self.gamma:g}{drawn})"
        )

    def __reduce__(self) -> Any:
        numbers = self.learning_rate, self.batch_size, self.gamma, self.replacement
        return _rebuild, (self.model, self.samples.X, self.samples.Y, *numbers)

    # --- numbers ------------------------------------------------------------------------------------------------------

    @property
    def X(self) -> Any:
        """Inputs as the model reads them; the `Population` where there is one."""
        return self.samples.X

    @property
    def Y(self) -> Any:
        """Targets as the model reads them; None for a `Population`."""
        return self.samples.Y

    @property
    def n_samples(self) -> int | None:
        """N; None for a `Population`."""
        return self.samples.n or None

    @property
    def sigma2(self) -> float:
        """σ² = η/(2S), the strength of the noise of batches with replacement; `noise_scale` has the ρ."""
        return self.learning_rate / (2.0 * self.batch_size)

    @property
    def rho(self) -> float:
        """ρ, by which the covariance of ĝ is smaller without replacement: (N - S)/(N - 1); 1 with replacement."""
        n = self.samples.n
        if self.replacement:
            return 1.0
        return (n - self.batch_size) / (n - 1) if n > 1 else 0.0

    @property
    def noise_scale(self) -> float:
        """σ²ρ: the covariance of the SDE's noise is 2σ²ρΣ."""
        return self.sigma2 * self.rho

    # --- at a θ -------------------------------------------------------------------------------------------------------

    def loss(self, theta: Any) -> Any:
        """L(θ), the mean loss without weight decay: shape (...) for θ of shape (..., d), a float for one θ."""
        return self.model.loss(theta, self.samples)

    def gradient(self, theta: Any) -> np.ndarray:
        """∇L(θ) without weight decay, shape (..., d)."""
        return self.model.gradient(theta, self.samples)

    def per_sample_losses(self, theta: Any) -> np.ndarray:
        """ℓ_i(θ), shape (N,), for θ of shape (d,)."""
        return self.model.losses(theta, self.samples)

    def per_sample_gradients(self, theta: Any) -> np.ndarray:
        """g_i = ∇ℓ_i(θ), shape (N, d), for θ of shape (d,)."""
        return self.model.per_sample_gradients(theta, self.samples)

    def gradient_moments(
        self, theta: Any, transform: Callable[[np.ndarray], np.ndarray] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean (d,) and variance (d,) over samples of the gradient in another basis, without N·d or d·d numbers.

        `transform` is linear and maps rows (n, d) to rows (n, d). In the eigenbasis of a symmetric A with eigenvalues
        μ, Tr[ΣA] = Σ_k μ_k var_k and ∇LᵀA∇L = Σ_k μ_k mean_k².
        """
        return self.model.gradient_moments(theta, self.samples, transform)

    def covariance(self, theta: Any, block: str | None = None) -> np.ndarray:
        """Σ(θ), the covariance of one sample's gradient, (d, d); or its diagonal block for one array, `block="W1"`."""
        return self.model.covariance(theta, self.samples, block)

    def factor(self, theta: Any, factor: Any = None) -> np.ndarray:
        """G (d, m) with GGᵀ = Σ(θ): the model's default, (d, N) with columns (g_i - ḡ)/√N, or another (see `sde`)."""
        theta = self.model.check_theta(theta, one=True)
        read = read_factor(self, factor)
        if read.kind == "native":
            return self.model.factor(theta, self.samples, read.value)
        return read.value.copy() if read.kind == "constant" else read.value(theta)

    def factor_leak(self, theta: Any, A: Any, factor: Any = None) -> float:
        """How much a factor leaks along a symmetry: ‖GᵀAθ‖/(‖G‖‖Aθ‖), in [0, 1]; 0 for an exact one.

        Parameters
        ----------
        theta : (d,) array_like
        A : Generator or (d, d) array_like
        factor : as in `sde`
        """
        theta = self.model.check_theta(theta, one=True)
        return leak(self.factor(theta, factor), A, theta)

    # --- dynamics -----------------------------------------------------------------------------------------------------

    def sde(self, factor: Any = None) -> SGDEquation:
        """The SDE dθ = -∇(L + γ‖θ‖²)dt + √(2σ²ρ) G(θ)dW (Itô), to be handed to `solve`; its `dt` defaults to η.

        Parameters
        ----------
        factor : str, (d, m) array_like or callable, optional
            G. By default the model's own: "per-sample" is matrix-free, m = N; "rank-one" (`Product`), m = 1. "gram":
            the symmetric square root Σ^{1/2} from the N × N Gram matrix, m = d. "cholesky": with a relative jitter of
            1e-12, m = d. An array (d, m) is a constant G, a function θ -> (d, m) any other. All are multiplied by
            √(2σ²ρ). "gram", "cholesky" and functions are evaluated in Python, at each step of each path.
        """
        from sgdsde.sgd.continuous import SGDEquation

        return SGDEquation(self, factor)

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
            Times t = η·step to save: start and end; that many; these, each moved to the nearest step; every step.

        Returns
        -------
        Solution
            As from `solve`, on the times t = η·step.
        """
        from sgdsde.run.grid import Grid
        from sgdsde.run.integrating import integrate

        equation = self.recursion()
        n_steps = _check.count("n_steps", n_steps)
        theta0 = _check.array("theta0", theta0)
        rows = theta0.shape[:-1]
        fits = rows == () or (len(rows) == 1 and n_paths is not None and (rows[0] == n_paths or path_index is not None))
        if theta0.shape[-1:] != (equation.dim,) or not fits:
            many = "" if n_paths is None else f" or ({n_paths}, {equation.dim})"
            raise ShapeError(f"theta0 must have shape ({equation.dim},){many}, got {theta0.shape}")
        eta = self.learning_rate
        return integrate(
            equation,
            equation.scheme,
            Grid(0.0, n_steps * eta, eta, eta, n_steps),
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


def _rebuild(model: Any, X: Any, Y: Any, eta: float, size: int, gamma: float, replacement: bool) -> SGD:
    return SGD(model, X, Y, learning_rate=eta, batch_size=size, gamma=gamma, replacement=replacement)
