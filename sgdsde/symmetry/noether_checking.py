"""Is J(θ)·∇ℓ_i(θ) = 0 for every sample? For any infinitesimal action J, linear or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ModelError
from sgdsde.random.stream import key_from
from sgdsde.symmetry.charges import as_problem
from sgdsde.symmetry.noether_fields import as_field

__all__ = ["TangencyReport", "check_tangency"]


@dataclass(frozen=True)
class TangencyReport:
    """Outcome of `check_tangency`; true when it holds at every state tried."""

    holds: bool
    name: str
    tangent: float
    """Largest |J·g_i|/(rtol·Σ_k|J_k g_ik|) over samples and states; at most 1 when it holds."""
    finite: float | None
    """Largest |ℓ_i(Q_λθ) - ℓ_i(θ)|/(tolerance of it); None when it was not tried, or Q_λ reaches no λ tried."""
    sample: int
    """Of the worst failure, or of the largest ratio."""
    theta: np.ndarray
    value: float
    """J·g_i there, or the change of ℓ_i."""
    n_states: int
    n_samples: int

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        finite = "not tried" if self.finite is None else f"{self.finite:.2g}"
        over = f"{self.n_states} states x {self.n_samples} samples"
        head = f"{self.name} {'is' if self.holds else 'is not'} orthogonal to every sample's gradient ({over})"
        lines = [head, f"  largest error / tolerance: tangent {self.tangent:.2g}, finite {finite}"]
        if not self.holds:
            lines.append(f"  worst at sample {self.sample}: {self.value:.3g}")
        return "\n".join(lines)


def check_tangency(
    problem: Any,
    J: Any,
    theta: Any = None,
    rng: Any = 0,
    *,
    n_states: int = 4,
    rtol: float = 1e-9,
    reach: float | None = None,
) -> TangencyReport:
    """Test J(θ)·∇ℓ_i(θ) = 0 for every sample, at θ and at random states.

    A symmetry on average, J·∇L = 0, is not enough for a law without noise: one sample that breaks it is named.

    Parameters
    ----------
    problem : SGD
    J : callable, Generator, Affine, pair (A, b), Charge or NoetherCharge
    theta : array_like of shape (d,) or (n, d), optional
        States to try first.
    rng : int or numpy.random.Generator
        Of the random states, normal with the size of `model.init`.
    n_states : int
        How many of those.
    rtol : float
        Beside Σ_k|J_k||g_ik|. Rounding alone is about d·eps; σ' near its zeros loses more than that.
    reach : float, optional
        Also compare the losses at Q_{±λ}θ, λ‖J‖ = reach·‖θ‖, to 1e-8(1 + |ℓ_i|); Q by integration of dθ/dλ = J.

    Examples
    --------
    >>> import sgdsde as sg
    >>> problem = sg.SGD(sg.models.Product(), [[1.0], [2.0]], [[0.5], [-1.0]], learning_rate=0.1)
    >>> bool(check_tangency(problem, lambda x: np.array([x[0], -x[1]]), reach=0.3))
    True
    >>> print(check_tangency(problem, lambda x: np.array([x[0], x[1]]), [1.0, 1.0], n_states=0))
    J is not orthogonal to every sample's gradient (1 states x 2 samples)
      largest error / tolerance: tangent 1e+09, finite not tried
      worst at sample 0: 2
    """
    dim = as_problem(problem, "per_sample_gradients").model.dim
    field = as_field(J, otherwise=dim)
    if field.dim != dim:
        raise ArgumentError(f"J must act on the {dim} parameters of the problem, got dim {field.dim}")
    rtol = _check.positive("rtol", rtol)
    random = rng if isinstance(rng, np.random.Generator) else np.random.default_rng(key_from(rng))
    states = [] if theta is None else list(_check.array("theta", np.atleast_2d(theta), ("n", dim)))
    size = _size(problem, random)
    states += list(size * random.standard_normal((_check.count("n_states", n_states, least=0), dim)))
    if not states:
        raise ArgumentError("n_states must be at least 1 when no theta is given")
    worst: dict[str, tuple[float, int, np.ndarray, float]] = {"tangent": (-1.0, 0, states[0], 0.0)}
    n_samples = 0
    for x in states:
        g, direction = _gradients(problem, x), field.apply(x)
        n_samples = len(g)
        values = g @ direction
        if not np.isfinite(values).all():
            raise ModelError(f"sample {int(np.argmin(np.isfinite(values)))} has a gradient, or J is, not finite there")
        _worse(worst, "tangent", values, rtol * (np.abs(g) @ np.abs(direction)), x)
        if reach is None or not direction.any():
            continue
        lam = _check.positive("reach", reach) * float(np.linalg.norm(x) / np.linalg.norm(direction))
        before = _losses(problem, x)
        for signed in (lam, -lam):
            try:
                moved = field.flow(signed, x)
            except ArgumentError:  # the group may be defined on one side alone
                continue
            _worse(worst, "finite", _losses(problem, moved) - before, 1e-8 * (1.0 + np.abs(before)), x)
    ratio, sample, where, value = max(worst.values(), key=lambda found: found[0])
    finite = worst["finite"][0] if "finite" in worst else None
    return TangencyReport(
        ratio <= 1.0, field.name, worst["tangent"][0], finite, sample, where, value, len(states), n_samples
    )


def _worse(worst: dict[str, Any], kind: str, values: np.ndarray, tolerance: np.ndarray, x: np.ndarray) -> None:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(values != 0, np.abs(values) / tolerance, 0.0)
    i = int(np.argmax(ratios))
    if kind not in worst or ratios[i] > worst[kind][0]:
        worst[kind] = (float(ratios[i]), i, x, float(values[i]))


def _gradients(problem: Any, x: np.ndarray) -> np.ndarray:
    """A row for each sample; of a law of the data the mean gradient and the columns of the factor."""
    if getattr(problem, "n_samples", 1) is None:
        return np.vstack([problem.gradient(x), problem.factor(x).T])
    return np.asarray(problem.per_sample_gradients(x))


def _losses(problem: Any, x: np.ndarray) -> np.ndarray:
    if getattr(problem, "n_samples", 1) is None:
        return np.array([problem.loss(x)])
    return np.asarray(problem.per_sample_losses(x))


def _size(problem: Any, random: np.random.Generator) -> float:
    if not hasattr(problem.model, "init"):
        return 1.0
    size = float(np.sqrt(np.mean(np.square(problem.model.init(rng=random)))))
    return size if np.isfinite(size) and size > 0 else 1.0
