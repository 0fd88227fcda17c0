"""The stationary law of u·w under the noise of SGD: a density with a tail of power 7/2, and a fluctuation that inverts.

ℓ = (uwx - y)², x ~ N(0, 1), y = x + ε, ε ~ N(0, 1): for T = η/S < T_c = 1/3 the SDE of SGD has a stationary density of
v = uw > 0 in closed form. The noise grows like θ³, so that plain Euler-Maruyama explodes where the SDE does not; steps
that follow the state lose no path. For each T the distribution of independent paths is held against the closed form
(Kolmogorov-Smirnov), and so are mean and variance of min(v, 4) (E v³ is infinite, and with it the standard error of a
bare variance). The variance rises with T and falls again before T_c.

Controls: the law of noise half as strong (η/S taken for 2·η/S); the law of the Stratonovich reading; plain and tamed
Euler-Maruyama with the same dt.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

import sgdsde as sg
from validation.claim import Check, Claim, bounded, statistical

BELOW = 4.0
BIAS = 0.01
"""Allowance for the step, of order dt = η, on moments of v below `BELOW`."""
ALPHA, BETA = (2.0, 2.0, 3.0), (1.0, 1.0)


class Law:
    """Depth 2, v > 0: p ∝ v^{β₂/(2α₃T) - c} q^{-1 - β₂/(4α₃T)} exp[-(α₃β₁ - α₂β₂)/(2Tα₃√Δ) arctan((α₁v - α₂)/√Δ)].

    c = 3/2; q = α₁v² - 2α₂v + α₃, Δ = α₁α₃ - α₂². With the Stratonovich reading the noise's own drift is missing, and
    c = 1 and the power of q is -½ - β₂/(4α₃T).
    """

    def __init__(self, T: float, stratonovich: bool = False) -> None:
        (a1, a2, a3), (b1, b2) = ALPHA, BETA
        root = np.sqrt(a1 * a3 - a2 * a2)
        self.z = np.linspace(-80.0, 14.0, 400_001)
        self.v = np.exp(self.z)
        v_power, q_power = (1.0, 0.5) if stratonovich else (1.5, 1.0)
        log_p = (b2 / (2 * a3 * T) - v_power) * self.z
        log_p -= (q_power + b2 / (4 * a3 * T)) * np.log(a1 * self.v**2 - 2 * a2 * self.v + a3)
        log_p -= (a3 * b1 - a2 * b2) / (2 * T * a3 * root) * np.arctan((a1 * self.v - a2) / root)
        p = np.exp(log_p + self.z - (log_p + self.z).max())  # of ln v
        self.p = p / p.sum()
        self.cdf = np.cumsum(self.p) - 0.5 * self.p

    def distance(self, v: np.ndarray) -> float:
        """The largest distance between the two distribution functions; 1 where paths were lost."""
        if not np.isfinite(v).all():
            return 1.0
        v, n = np.sort(v), v.size
        F = np.interp(np.log(np.maximum(v, 1e-300)), self.z, self.cdf)
        return float(max((np.arange(1, n + 1) / n - F).max(), (F - np.arange(n) / n).max()))

    def moments(self) -> tuple[float, float]:
        """Mean and variance of min(v, BELOW)."""
        w = np.minimum(self.v, BELOW)
        mean = float(self.p @ w)
        return mean, float(self.p @ (w - mean) ** 2)


def ends(problem: sg.SGD, case: Mapping[str, Any], seed: int, **options: Any) -> sg.Solution:
    """Independent paths from v = 0.8 at the time of a case, without words about those that were lost."""
    common = {"n_paths": case["paths"], "dt": case["dt / η"] * problem.learning_rate, "rng": seed, "keep": "final"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.DivergenceWarning)
        return sg.solve(problem.sde(), (0, case["time"]), [0.8**0.5] * 2, **{**common, **options})


def run(settings: Mapping[str, Any], seed: int) -> tuple[list[Check], dict[str, Any]]:
    model, data = sg.models.Product(), sg.models.uw_gauss(1.0, 1.0)
    checks, found = [], {}
    for case in settings["cases"]:
        T, n = case["T"], case["paths"]
        problem, law = sg.SGD(model, data, learning_rate=T, batch_size=1), Law(T)
        solution = ends(problem, case, seed, step_size="auto")
        v = model.value(solution.y[:, -1])
        w, (mean, variance) = np.minimum(v, BELOW), law.moments()
        found[T] = v, law
        checks.append(bounded(f"T={T:g}: paths lost", solution.n_diverged, 0, 0))
        # the distance of a sample of the law itself is above 2.7/sqrt(n) once in a million
        far = max(0.03, 2.7 / np.sqrt(n) + BIAS)
        checks.append(bounded(f"T={T:g}: KS distance to the closed form", law.distance(v), 0.0, far))
        error = float(w.std()) / np.sqrt(n) + BIAS * mean
        checks.append(statistical(f"T={T:g}: mean of v", float(w.mean()), mean, error))
        error = float(np.std((w - w.mean()) ** 2)) / np.sqrt(n) + BIAS * variance
        checks.append(statistical(f"T={T:g}: variance of v", float(w.var()), variance, error))
        wrong = {"noise half as strong": Law(T / 2), "Stratonovich reading": Law(T, stratonovich=True)}
        for name, other in wrong.items():
            checks.append(bounded(f"T={T:g}: KS, {name}", other.distance(v), 0.0, far, control=True))
        if T == settings["explodes"]:
            lost = ends(problem, case, seed, n_paths=2000).n_diverged
            checks.append(bounded(f"T={T:g}: lost by plain Euler-Maruyama, of 2000", lost, 0, 0, control=True))
            tamed = ends(problem, case, seed, method="tamed-euler")
            distance = law.distance(model.value(tamed.y[:, -1]))
            checks.append(bounded(f"T={T:g}: KS, tamed Euler-Maruyama", distance, 0.0, far, control=True))
    spreads = [float(np.minimum(v, BELOW).var()) for v, _ in found.values()]
    inverts = float(spreads[-1] < 0.95 * max(spreads) and spreads[0] < 0.95 * max(spreads))
    checks.append(bounded("the variance is largest between the ends (1: yes)", inverts, 1.0, 0.0))
    return checks, {"found": found}


def draw(figure: Any, data: dict[str, Any]) -> None:
    axes = figure.subplots(1, 2)
    grid = np.geomspace(1e-2, 20.0, 60)
    for T, (v, law) in data["found"].items():
        density, edges = np.histogram(v, bins=grid)
        middle, width = np.sqrt(edges[1:] * edges[:-1]), np.diff(edges)
        (line,) = axes[0].loglog(middle, np.where(density, density, np.nan) / width / v.size, ".", ms=4)
        exact = np.diff(np.interp(np.log(grid), law.z, law.cdf)) / width
        axes[0].loglog(middle, exact, color=line.get_color(), lw=1, label=f"T = {T:g}")
    axes[0].set(xlabel="v = uw", ylabel="density", ylim=(1e-5, 10))
    axes[0].legend(fontsize=8)
    strengths = np.linspace(0.02, 0.32, 31)
    axes[1].plot(strengths, [Law(T).moments()[1] for T in strengths], color="#0072B2", label="closed form")
    measured = [float(np.minimum(v, BELOW).var()) for v, _ in data["found"].values()]
    axes[1].plot(list(data["found"]), measured, "o", color="#D55E00", label="measured")
    axes[1].set(xlabel="T = η/S", ylabel=f"variance of min(v, {BELOW:g})")
    axes[1].legend()


CASES = [
    {"T": 0.05, "time": 2.0, "paths": 20_000, "dt / η": 1.0},
    {"T": 0.1, "time": 3.0, "paths": 20_000, "dt / η": 1.0},
    {"T": 0.2, "time": 9.0, "paths": 20_000, "dt / η": 1.0},
    {"T": 0.26, "time": 24.0, "paths": 4_000, "dt / η": 0.5},  # slow: the law spreads to tiny v as T_c comes near
]

CLAIM = Claim(
    name="stationary-law",
    statement="u·w under the noise of SGD has the stationary density of the closed form; its variance inverts with T",
    source="Ziyin, Li & Ueda 2023, arXiv 2308.06671, Eq. (15) (and (14), its integral read as indefinite)",
    quick={"cases": CASES, "explodes": 0.2},
    full={
        "cases": [{**c, "paths": 100_000, "time": 1.5 * c["time"], "dt / η": 0.5 * c["dt / η"]} for c in CASES],
        "explodes": 0.2,
    },
    run=run,
    draw=draw,
)
