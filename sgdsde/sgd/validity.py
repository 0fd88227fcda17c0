"""Where the SDE of SGD can be trusted at a θ, before a run: what it leaves out beside what it keeps; how long it takes.

Means over samples, and products of the Hessian with vectors; of a law of the data its closed forms, and only the
kurtosis is sampled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.models.naming import charged

__all__ = ["ChargeValidity", "Validity", "validity"]

POWER_STEPS = 60
"""Products with the Hessian for its largest eigenvalue, at most."""
MOST = 64
"""Charges that are looked at where none are named."""
DRAWN = 4096
"""Samples of a law of the data from which its kurtosis is estimated, with seed 0."""
CLOSE = 0.1
"""What is left out below this part of what is kept counts as small."""


@dataclass(frozen=True)
class ChargeValidity:
    """The law of one charge C = θᵀAθ: dC/dt of the SDE beside what discrete SGD adds to it.

    Attributes
    ----------
    name : str
    noise : float
        2σ²ρ Tr[ΣA].
    decay : float
        -4γC.
    discrete : float
        η∇LᵀA∇L + 4ηγ²C: the mean of (C' - C)/η of SGD less that of the SDE.
    kappa : float
        Rate at which C goes to its equilibrium along the orbit, 4γ + 2σ²ρ Tr[ΣA²]/(θᵀA²θ), in 1/t.
    steps : float
        Steps of SGD in one relaxation, 1/(ηκ).
    """

    name: str
    noise: float
    decay: float
    discrete: float
    kappa: float
    steps: float

    @property
    def ratio(self) -> float:
        """|discrete| / (|noise| + |decay|)."""
        kept = abs(self.noise) + abs(self.decay)
        return abs(self.discrete) / kept if kept > 0 else (0.0 if self.discrete == 0.0 else np.inf)


@dataclass(frozen=True, repr=False)
class Validity:
    """Where the SDE stands at one θ; prints as a table with a sentence on each number.

    Attributes
    ----------
    learning_rate, batch_size
        η (the effective one with momentum) and S.
    gradient_power : float
        ‖∇L_γ‖², L_γ = L + γ‖θ‖².
    noise_power : float
        ρ Tr Σ/S, the trace of the covariance of ĝ.
    sharpness : float
        λ_max of ∇²L_γ by power iteration: of largest modulus, with its sign.
    hessian_trace : float
        Tr ∇²L_γ; NaN where it would take more than 1000 products.
    kurtosis : float
        E‖δ‖⁴/(E‖δ‖²)² of the deviations δ of single gradients: 1 where all are as long, N where one sample has it all.
        Of a law of the data, and with label noise, an estimate from fresh samples; NaN where it has moments alone.
    largest_share : float
        max‖δ_i‖²/Σ‖δ_i‖²; NaN for a law of the data, and with label noise.
    charges : dict of ChargeValidity
    """

    learning_rate: float
    batch_size: int
    gradient_power: float
    noise_power: float
    sharpness: float
    hessian_trace: float
    kurtosis: float
    largest_share: float
    charges: Mapping[str, ChargeValidity]

    @property
    def noise_to_gradient(self) -> float:
        """noise_power / gradient_power: above 1 the noise of a step is larger than its mean."""
        return self.noise_power / self.gradient_power if self.gradient_power > 0 else np.inf

    @property
    def largest_learning_rate(self) -> float:
        """η·noise_to_gradient: at rest the SDE, and the linear scaling rule, need η well below this.

        The necessary condition η <~ (N/G)(C² - 1) of Z. Li, S. Malladi, S. Arora (NeurIPS 2021) with C = √2.
        """
        return self.learning_rate * self.noise_to_gradient

    @property
    def steps_to_equilibrium(self) -> float:
        """Steps in a relaxation of the slowest charge; NaN without charges."""
        return max((one.steps for one in self.charges.values()), default=np.nan)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What speaks against the SDE here; empty where nothing does."""
        eta, found = self.learning_rate, []
        if eta * abs(self.sharpness) >= 2.0:
            found.append(f"eta·lambda_max = {eta * self.sharpness:.3g} >= 2: gradient descent itself is unstable here")
        elif eta * abs(self.sharpness) >= 0.5:
            found.append(f"eta·lambda_max = {eta * self.sharpness:.3g}: steps are not small beside the curvature")
        if self.noise_power == 0.0:
            found.append(
                "the batch is all samples: no noise, and charges move by eta²∇LᵀA∇L alone, which the SDE lacks"
            )
        elif self.noise_to_gradient < 1.0:
            found.append(
                f"noise/gradient = {self.noise_to_gradient:.2g} < 1: a step is mostly its mean, and discrete terms of "
                "charges are not small (fine on the way down, not at rest)"
            )
        bad = [one for one in self.charges.values() if one.ratio > CLOSE]
        if bad:
            worst = max(bad, key=lambda one: one.ratio)
            found.append(
                f"{len(bad)} of {len(self.charges)} charges move by discrete terms of more than {CLOSE:.0%} of the "
                f"SDE's (worst {worst.name}: {worst.ratio:.0%})"
            )
        if self.kurtosis / self.batch_size > 30.0:
            found.append(
                f"kurtosis {self.kurtosis:.3g} of single gradients: a few samples make the noise, which is Gaussian "
                "over many steps only"
            )
        return tuple(found)

    @property
    def _kurtosis_note(self) -> str:
        if np.isfinite(self.largest_share):
            return f"largest share of one sample {self.largest_share:.2%}"
        return "estimated from fresh samples" if np.isfinite(self.kurtosis) else "unknown"

    def __repr__(self) -> str:
        eta = self.learning_rate
        rows = [
            ("eta, S", f"{eta:g}, {self.batch_size}", ""),
            ("||grad||²", f"{self.gradient_power:.4g}", "of L + gamma·||theta||²"),
            ("noise power", f"{self.noise_power:.4g}", "rho·Tr Sigma/S"),
            (
                "noise/gradient",
                f"{self.noise_to_gradient:.3g}",
                f"eta should stay below {self.largest_learning_rate:.3g}",
            ),
            ("eta·lambda_max", f"{eta * self.sharpness:.3g}", "stable below 2"),
            ("eta·Tr H", f"{eta * self.hessian_trace:.3g}", ""),
            ("kurtosis", f"{self.kurtosis:.3g}", self._kurtosis_note),
        ]
        lines = ["SDE of SGD at this theta"]
        lines += [f"  {name:<16}{value:>12}  {note}".rstrip() for name, value, note in rows]
        if self.charges:
            lines.append(f"  {'charge':<16}{'noise':>12}{'decay':>12}{'discrete':>12}{'ratio':>9}{'steps':>10}")
            shown = sorted(self.charges.values(), key=lambda one: -one.ratio)[:8]
            for one in shown:
                numbers = (
                    f"{one.noise:>12.4g}{one.decay:>12.4g}{one.discrete:>12.4g}{one.ratio:>9.1%}{one.steps:>10.3g}"
                )
                lines.append(f"  {one.name:<16.16}{numbers}")
            if len(self.charges) > len(shown):
                lines.append(f"  and {len(self.charges) - len(shown)} charges with smaller ratios")
        lines += [f"  warning: {text}" for text in self.warnings] or ["  nothing speaks against the SDE here"]
        return "\n".join(lines)


def validity(problem: Any, theta: Any, generators: Any = None) -> Validity:
    """What `SGD.validity` returns; see there."""
    model, samples = problem.model, problem.samples
    theta = model.check_theta(_check.array("theta", theta), one=True)
    eta, gamma, scale = problem.effective_learning_rate, problem.gamma, problem.noise_scale
    mean = problem.gradient(theta)
    if samples.n:
        squares = _deviations(problem.model, samples, theta, mean)
        total = float(squares.mean())
        largest = float(squares.max() / squares.sum()) if total > 0 else np.nan
        if problem.label_noise is not None:  # `samples` are points with the right mean and covariance, and no more
            squares, largest = _noisy_deviations(problem, theta, mean), np.nan
    else:
        squares = _drawn_deviations(problem, theta, mean)
        total, largest = float(problem.gradient_moments(theta)[1].sum()), np.nan
    full = mean + 2 * gamma * theta
    charges = {}
    for name, A in _read(problem, generators).items():
        at, var = problem.gradient_moments(theta, A.to_eigenbasis)
        mu, charge = A.eigenvalues, A.quadratic(theta)
        direction = A.apply(theta)
        size = float(direction @ direction)
        kappa = 4 * gamma + (2 * scale * float(mu**2 @ var) / size if size > 0 else np.nan)
        charges[name] = ChargeValidity(
            name=name,
            noise=2 * scale * float(mu @ var),
            decay=-4 * gamma * float(charge),
            discrete=eta * float(mu @ at**2) + 4 * eta * gamma**2 * float(charge),
            kappa=kappa,
            steps=1.0 / (eta * kappa) if kappa > 0 else np.inf,
        )
    few = getattr(model.compiled(), "traces", None) is not None or not samples.n or model.dim <= 1000
    typical = float(squares.mean()) if squares.size else np.nan
    return Validity(
        learning_rate=eta,
        batch_size=problem.batch_size,
        gradient_power=float(full @ full),
        noise_power=problem.rho * total / problem.batch_size,
        sharpness=_sharpness(problem, theta),
        hessian_trace=model.hessian_trace(theta, samples) + 2 * gamma * model.dim if few else np.nan,
        kurtosis=float((squares**2).mean() / typical**2) if typical > 0 else np.nan,
        largest_share=largest,
        charges=charges,
    )


def _deviations(model: Any, samples: Any, theta: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """‖g_i - ∇L‖², (N,), a few samples at a time."""
    out, n = np.empty(samples.n), samples.n
    step = max(1, min(n, 2**22 // theta.size))
    for start in range(0, n, step):
        rows = model.per_sample_gradients(theta, samples, start, min(n, start + step))
        out[start : start + step] = np.square(rows - mean).sum(axis=1)
    return out


def _noisy_deviations(problem: Any, theta: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """The same for samples with fresh noise in their labels: DRAWN of them, or one for each sample."""
    from sgdsde._abi import AUXILIARY
    from sgdsde.random.stream import normals

    clean, std = problem.drawn, problem.label_noise
    at = np.arange(max(DRAWN, clean.n)) % clean.n
    noise = normals(0, 0, purpose=AUXILIARY, count=at.size * std.size).reshape(at.size, std.size) * std
    Y = clean.Y[at] + noise.reshape(at.size, *clean.Y.shape[1:])
    return _deviations(problem.model, problem.model.samples(clean.X[at], Y), theta, mean)


def _drawn_deviations(problem: Any, theta: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """The same for fresh samples of a law of the data; empty where it has none to draw."""
    law = problem.X
    if getattr(law, "sampler", ()) is None:
        return np.empty(0)
    model = getattr(problem.model, "plain", problem.model)
    return _deviations(model, model.samples(*law.draw(DRAWN, 0)), theta, mean)


def _sharpness(problem: Any, theta: np.ndarray) -> float:
    """Eigenvalue of largest modulus of ∇²L_γ."""
    v = np.random.default_rng(0).standard_normal(theta.size)
    v /= np.linalg.norm(v)
    value = 0.0
    for _ in range(POWER_STEPS):
        w = problem.model.hessian_vector(theta, v, problem.samples) + 2 * problem.gamma * v
        before, value = value, float(v @ w)
        length = float(np.linalg.norm(w))
        if length == 0.0:
            return 0.0
        v = w / length
        if abs(value - before) <= 1e-4 * abs(value):
            break
    return value


def _read(problem: Any, generators: Any) -> dict[str, Any]:
    if generators is None:
        return charged(problem.model.symmetries(), MOST)
    if not isinstance(generators, Mapping):
        raise ArgumentError(f"generators must map names to Generators, got {_check.show(generators)}")
    return {name: A for name, A in generators.items() if A.is_symmetric}
