"""Charges of a hidden layer all at once: Q = UᵀU - WWᵀ of linear layers, diag[VVᵀ - αUᵀU] of homogeneous ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.algebra import Generator
from sgdsde.algebra.block import Block, Diagonal, Zero
from sgdsde.run.watching import Watcher
from sgdsde.symmetry import noether_law
from sgdsde.symmetry.actions_layers import hidden_layer, units_of
from sgdsde.symmetry.charges import Charge, ChargeTerms, as_problem

__all__ = ["LayerCharges", "LayerReport", "MatrixCharge", "UnitCharges"]


class LayerCharges:
    """Base: quadratic charges C[θ] of two layers, as an array, whose symmetries are θᵀA∇ℓ_i = 0 for each entry.

    Because they are quadratic, one form says everything: with v the step without decay and a = 1 - 2hγ,

        C[θ'] = a²C[θ] + C[v],    dC = (-4γC[θ] + 2σ²ρ E C[δ])dt,

    δ = g_i - ∇L of a sample: exact in each step of SGD and Euler-Maruyama, and without noise in the SDE.
    """

    def __init__(self, model: Any, layer: int) -> None:
        (below, above, bias), shapes = hidden_layer(model, layer), model.shapes
        self.layer, self.model, self.dim = int(layer), model, int(model.dim)
        self.width = int(shapes[below][0])
        places = model.places()
        self._below, self._above = (places[below], shapes[below]), (places[above], shapes[above])
        self._bias = places[bias] if bias else None
        self.name = ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, layer={self.layer})"

    def layers(self, theta: Any) -> tuple[np.ndarray, np.ndarray]:
        """U = W_{l+1} (..., m, h) and V = W_l (..., h, n); a bias b_l is one more column of V."""
        theta = _check.array("theta", theta, finite=False)
        if theta.ndim == 0 or theta.shape[-1] != self.dim:
            raise ShapeError(f"theta must have shape (..., {self.dim}), got {theta.shape}")
        v, u = (theta[..., at].reshape(*theta.shape[:-1], *shape) for at, shape in (self._below, self._above))
        if self._bias is not None:
            v = np.concatenate([v, theta[..., self._bias, None]], axis=-1)
        return u, v

    def _form(self, theta: Any) -> np.ndarray:
        raise NotImplementedError

    def __call__(self, theta: Any) -> np.ndarray:
        """The charges at θ (..., d), shape (..., *charges)."""
        return self._form(theta)

    def step(self, theta: Any, v: Any, decay: float = 1.0) -> np.ndarray:
        """The charges after θ' = decay·θ + v: decay²·C[θ] + C[v], exact where v is a sum of gradients.

        For SGD v = -ηĝ and decay = 1 - 2ηγ, whatever the batch.
        """
        return decay**2 * self._form(theta) + self._form(v)

    def noise(self, problem: Any, theta: np.ndarray) -> np.ndarray:
        """E C[δ]: Tr[ΣA] for each charge, from one pass over the per-sample gradients."""
        total, count = np.zeros(self._form(np.zeros(self.dim)).shape), 0
        for delta in noether_law.centred_gradients(problem, theta):
            total += self._form(delta).sum(axis=0)
            count += len(delta)
        return total / max(count, 1)

    def rate(self, problem: Any, theta: Any) -> np.ndarray:
        """-4γC + 2σ²ρ E C[δ], the drift of the charges under the SDE, (..., *charges)."""
        self._fits(problem)
        gamma, scale = float(problem.gamma), 2.0 * float(problem.noise_scale)
        return self._each(theta, lambda x: -4.0 * gamma * self._form(x) + scale * self.noise(problem, x))

    def residual(self, problem: Any, theta: Any) -> np.ndarray:
        """2γC - σ²ρ E C[δ]: zero at the noise equilibrium."""
        return -0.5 * self.rate(problem, theta)

    def terms(self, problem: Any, theta: Any, dt: float | None = None) -> ChargeTerms:
        """E[ΔC]/h for a step of SGD (h = η, the default) or Euler-Maruyama, exactly: decay, noise and gradient part.

        (-4γ + 4hγ²)C, 2σ²ρ E C[δ], h C[∇L], each of shape (..., *charges).
        """
        self._fits(problem)
        h = float(problem.learning_rate) if dt is None else _check.positive("dt", dt)
        gamma, scale = float(problem.gamma), 2.0 * float(problem.noise_scale)

        def parts(x: np.ndarray) -> np.ndarray:
            decay = (-4.0 * gamma + 4.0 * h * gamma**2) * self._form(x)
            return np.stack([decay, scale * self.noise(problem, x), h * self._form(problem.gradient(x))])

        lead = np.ndim(theta) - 1
        return ChargeTerms(*np.moveaxis(self._each(theta, parts), lead, 0))

    def discrete_rate(self, problem: Any, theta: Any, dt: float | None = None) -> np.ndarray:
        """E[ΔC | θ]/h: `terms(...).total`."""
        return self.terms(problem, theta, dt).total

    def report(self, solution: Any, problem: Any = None) -> LayerReport:
        """The charges along a run beside their law.

        With `t_eval="steps"` of SGD or Euler-Maruyama the prediction is the exact mean of each step; otherwise the rate
        of the SDE, integrated over the saved states. `problem` is by default the solution's.
        """
        run = noether_law.read_run(self, solution, problem)
        values = self._form(run.states)
        rates, means = np.full((2, *values.shape), np.nan)
        cross = None
        for path, states in enumerate(run.states):
            for k, x in enumerate(states):
                if np.isfinite(x).all():
                    parts = self.terms(run.problem, x, run.step)
                    rates[path, k] = parts.noise - 4.0 * float(run.problem.gamma) * values[path, k]
                    means[path, k] = np.nan if run.step is None else run.step * parts.total
        changes = means[:, :-1]
        if run.step is None:
            dt = np.diff(run.t).reshape(-1, *(1,) * (values.ndim - 2))
            changes = 0.5 * (rates[:, 1:] + rates[:, :-1]) * dt
        else:
            decay = 1.0 - 2.0 * run.step * float(run.problem.gamma)
            v = run.states[:, 1:] - decay * run.states[:, :-1]
            cross = values[:, 1:] - self.step(run.states[:, :-1], v, decay)
        predicted = np.concatenate([np.zeros_like(values[:, :1]), np.cumsum(changes, axis=1)], axis=1)
        return LayerReport(self.name, run.method, run.t, values, rates, predicted, cross)

    def __observe__(self, equation: Any) -> Watcher:
        """The charges at the saved times of a run, raveled, `observe=charges`: a call into Python."""
        from sgdsde.run.python_observer import PythonObserver, python_observe

        if equation.dim != self.dim:
            raise ArgumentError(f"{self.name} acts on {self.dim} components, the equation has {equation.dim}")
        rows = int(self._form(np.zeros(self.dim)).size)
        observer = PythonObserver(self.name, lambda t, y: self._form(y).ravel(), (), rows)
        return Watcher(python_observe, observer.p(), np.zeros(1), rows, (0, 0), observer)

    def _each(self, theta: Any, function: Any) -> np.ndarray:
        theta = _check.array("theta", theta, finite=False)
        if theta.ndim == 0 or theta.shape[-1] != self.dim:
            raise ShapeError(f"theta must have shape (..., {self.dim}), got {theta.shape}")
        values = np.array([function(x) for x in theta.reshape(-1, self.dim)])
        return values.reshape(*theta.shape[:-1], *values.shape[1:])

    def _fits(self, problem: Any) -> None:
        if as_problem(problem, "gradient", "gamma", "noise_scale").model.dim != self.dim:
            raise ArgumentError(f"{self.name} acts on {self.dim} components, the problem has {problem.model.dim}")


@dataclass(frozen=True, repr=False, eq=False)
class LayerReport:
    """Charges of a layer along a run; arrays are (n_paths, n_times, *charges)."""

    name: str
    dynamics: str
    t: np.ndarray
    charge: np.ndarray
    rate: np.ndarray
    """-4γC + 2σ²ρ E C[δ] at the saved states."""
    predicted: np.ndarray
    """Change since the start by the law: exact means of single steps where all were saved, else of the SDE."""
    cross: np.ndarray | None
    """(n_paths, n_times - 1, *charges) C[θ'] - a²C[θ] - C[θ' - aθ] of each step: zero to rounding for a symmetry."""

    @property
    def delta(self) -> np.ndarray:
        """Change since the start, measured."""
        return self.charge - self.charge[:, :1]

    @property
    def remainder(self) -> np.ndarray:
        """delta - predicted: a martingale where single steps were predicted."""
        return self.delta - self.predicted

    @property
    def residual(self) -> np.ndarray:
        """2γC - σ²ρ E C[δ]."""
        return -0.5 * self.rate

    def __repr__(self) -> str:
        axes = tuple(range(1, self.charge.ndim - 1))
        lines = [
            f"{self.name} along {self.dynamics}, t = {self.t[-1]:g}, {len(self.charge)} paths; root sums of squares"
        ]
        for label in ("charge", "delta", "predicted", "remainder", "residual"):
            size = np.sqrt(np.sum(getattr(self, label)[:, -1] ** 2, axis=axes))
            lines.append(f"  {label:<10} {size.mean(): .6e}")
        if self.cross is not None:
            lines.append(f"  largest cross term of a step {np.abs(self.cross).max(initial=0.0):.1e}")
        return "\n".join(lines)


class MatrixCharge(LayerCharges):
    """Q = UᵀU - WWᵀ (h, h) of a hidden layer l of linear units, W = W_l (h, n), U = W_{l+1} (m, h).

    Its h(h + 1)/2 entries are the charges of (W, U) ↦ (-BW, UB) for all symmetric B at once, C_B = Tr[BQ], linear in B.
    For every batch of SGD, and with -v in place of ηĝ in Euler-Maruyama,

        Q' = (1 - 2ηγ)²Q + η²(ĝ_Uᵀĝ_U - ĝ_Wĝ_Wᵀ),    dQ = (-4γQ + 2σ²ρ(E δ_Uᵀδ_U - E δ_Wδ_Wᵀ))dt.

    For two layers that is -4γQ + 8σ²ρ{W(E[‖r‖²xxᵀ] - MᵀM)Wᵀ - Uᵀ(E[‖x‖²rrᵀ] - MMᵀ)U}, r = UWx - y and M = E[rxᵀ].
    Zhao et al. 2023 (arXiv 2210.17216) have -Q, with V for W; how many of its entries are independent: `count_charges`.
    Du, Hu, Lee 2018 (arXiv 1806.00900) have Q for gradient flow.

    Parameters
    ----------
    model : DeepLinear, MLP with activation "identity", or a model of one's own with matrices W1, W2, … of linear units
        A bias b_l counts as one more column of W.
    layer : int
        l >= 1.

    Examples
    --------
    >>> from sgdsde.models import DeepLinear
    >>> Q = MatrixCharge(DeepLinear([1, 2, 1]))
    >>> Q([3.0, 0.0, 2.0, 1.0])  # W = [3, 0], U = [2, 1]
    array([[-5.,  2.],
           [ 2.,  1.]])
    """

    def __init__(self, model: Any, layer: int = 1) -> None:
        super().__init__(model, layer)
        if units_of(model) not in ("identity", None):
            raise ArgumentError(
                f"model must have linear units for Q = UᵀU - WWᵀ, got {model!r}; of ReLU units its diagonal is kept, "
                "see UnitCharges"
            )
        self.name = f"Q[W{self.layer}/W{self.layer + 1}]"

    def _form(self, theta: Any) -> np.ndarray:
        u, v = self.layers(theta)
        return np.swapaxes(u, -1, -2) @ u - v @ np.swapaxes(v, -1, -2)

    def charge(self, B: Any) -> Charge:
        """The `Charge` C_B = Tr[BQ] of one symmetric B (h, h)."""
        return Charge(self.model.generator(B, self.layer))


class UnitCharges(LayerCharges):
    """diag[VVᵀ - αUᵀU] (h,) of a hidden layer whose activation is homogeneous of degree α, σ(cz) = c^α σ(z) for c > 0.

    The charges of (V_k, U_k) ↦ (e^λ V_k, e^{-αλ} U_k), unit by unit: V_k are the weights into it, with its bias, and
    U_k those out of it. α = 1 for linear, ReLU and leaky ReLU units, 2 for squared ReLU. With α = 1 it is minus the
    diagonal of `MatrixCharge`. Source: Zhao et al. 2023 (arXiv 2210.17216).

    Parameters
    ----------
    model : Model
        With matrices W1, W2, …: `MLP` with "relu", or one of one's own, whose units are taken to be of degree α.
    layer : int
        l >= 1; V = W_l (and b_l), U = W_{l+1}.
    alpha : float
        Degree. 0 for a scale-invariant one.

    Examples
    --------
    >>> from sgdsde.models import MLP
    >>> charges = UnitCharges(MLP([1, 2, 1], "relu", biases=False))
    >>> charges([3.0, 0.0, 2.0, 1.0])
    array([ 5., -1.])
    """

    def __init__(self, model: Any, layer: int = 1, alpha: float = 1.0) -> None:
        super().__init__(model, layer)
        self.alpha = _check.number("alpha", alpha, least=0.0)
        known = units_of(model)
        if known not in ("identity", "relu", "leaky_relu", None):
            raise ArgumentError(f"model must have homogeneous units, each by itself, got {known!r} ones")
        if known is not None and self.alpha != 1.0:
            raise ArgumentError(f"alpha must be 1, the degree of {known!r}, got {alpha:g}")
        self.name = f"diag[W{self.layer}W{self.layer}ᵀ - {self.alpha:g}W{self.layer + 1}ᵀW{self.layer + 1}]"

    def _form(self, theta: Any) -> np.ndarray:
        u, v = self.layers(theta)
        return np.sum(v**2, axis=-1) - self.alpha * np.sum(u**2, axis=-2)

    def charge(self, unit: int) -> Charge:
        """The `Charge` of one hidden unit."""
        unit = _check.count("unit", unit, least=0, most=self.width - 1)
        chosen = np.zeros(self.width)
        chosen[unit] = 1.0
        blocks: list[Block] = []
        for name, shape in self.model.shapes.items():
            size = int(np.prod(shape))
            if name in (f"W{self.layer}", f"b{self.layer}"):
                blocks.append(Diagonal(np.repeat(chosen, size // self.width)))
            elif name == f"W{self.layer + 1}" and self.alpha > 0:
                blocks.append(Diagonal(-self.alpha * np.tile(chosen, size // self.width)))
            else:
                blocks.append(Zero(size))
        return Charge(Generator.blocks(blocks, f"W{self.layer}/W{self.layer + 1}[{unit}]"))
