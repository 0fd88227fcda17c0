"""Means of SGD are those of its SDE up to O(η), and up to O(η²) for the equation of order 2, at fixed time and batch.

First without Monte Carlo: ℓ_i = ½a_i(θ - b_i)², where one step maps moments to moments. Then on a network, from runs,
with an interval. At fixed temperature T = η/S a part of size T² stays when η falls (third cumulants of the gradients,
which no Gaussian noise has); along SVAG(l) nothing stays, and its limit l → ∞ is the SDE, which it has never seen.

Controls: each order taken for the other; the SDE with twice the noise as the limit of SVAG, and SGD itself; nothing
left in E θ⁴ at fixed T.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import comb
from typing import Any

import numpy as np
from scipy.linalg import expm

import sgdsde as sg
from validation.claim import Check, Claim, bounded, statistical

SLOPE, CENTRE, MANY = np.array([0.4, 1.9]), np.array([0.5, -0.8]), np.array([3, 1])
START, K = 1.2, 4
"""Moments up to E θ⁴; of each four samples three are of the first kind."""


def linear(eta: float, S: int, copies: int = 1) -> sg.SGD:
    many = copies * MANY
    X, Y = np.repeat(np.sqrt(SLOPE), many)[:, None], np.repeat(np.sqrt(SLOPE) * CENTRE, many)
    model = sg.models.LinearRegression(1, biases=False, scale=0.5)
    return sg.SGD(model, X, Y, learning_rate=eta, batch_size=S)


def moments_of_sgd(problem: sg.SGD, time: float) -> np.ndarray:
    """E θ^k, k = 0 … K, after time/η steps: every batch in turn."""
    S, eta = problem.batch_size, problem.learning_rate
    q = MANY[1] / MANY.sum()
    step = np.zeros((K + 1, K + 1))
    for n in range(S + 1):
        share, chance = np.array([S - n, n]) / S, comb(S, n) * q**n * (1 - q) ** (S - n)
        a, b = 1 - eta * (share @ SLOPE), eta * (share @ (SLOPE * CENTRE))
        for k in range(K + 1):
            for j in range(k + 1):
                step[k, j] += chance * comb(k, j) * a**j * b ** (k - j)
    return np.linalg.matrix_power(step, round(time / eta)) @ START ** np.arange(K + 1)


def moments_of_sde(problem: sg.SGD, time: float, order: int, times: float = 1.0) -> np.ndarray:
    """E X^k from the generator; `times` multiplies the noise."""
    x = np.array([0.0, 1.0, 2.0])
    drift = np.polynomial.Polynomial.fit(x, [-problem.gradient([one])[0] for one in x], 1).convert()
    if order == 2:
        drift = drift - 0.5 * problem.learning_rate * drift * drift.deriv()
    square = [2 * times * problem.noise_scale * problem.covariance([one])[0, 0] for one in x]
    noise = np.polynomial.Polynomial.fit(x, square, 2).convert()
    rate = np.zeros((K + 1, K + 1))
    for k in range(1, K + 1):
        rate[k, k - 1 : k - 1 + drift.coef.size] += k * drift.coef
        if k > 1:
            rate[k, k - 2 : k - 2 + noise.coef.size] += 0.5 * k * (k - 1) * noise.coef
    return expm(time * rate) @ START ** np.arange(K + 1)


def order_check(name: str, result: Any, claimed: float, *, control: bool = False) -> Check:
    """Whether the interval of a measured order holds the one that is claimed."""
    low, high = result.interval
    inside = bool(result.verdict != "inconclusive" and low <= claimed <= high)
    return Check(name, result.order, claimed, 0.5 * (high - low), inside, control, "interval")


def without_monte_carlo(settings: Mapping[str, Any]) -> tuple[list[Check], dict[str, Any]]:
    time, checks, curves = settings["time"], [], {}
    of = {f"θ^{k}": (lambda y, k=k: y[:, 0] ** k) for k in range(1, K + 1)}
    problem = linear(0.01, 2)
    for order in (1, 2):
        found = sg.weak_error(
            problem, [START], time, 0.01 / 2.0 ** np.arange(6), functions=of, order=order,
            exact_sgd=lambda p: dict(zip(of, moments_of_sgd(p, time)[1:])),
            exact_sde=lambda p, order=order: dict(zip(of, moments_of_sde(p, time, order)[1:])),
        )  # fmt: skip
        curves[f"E θ, order {order}, exact"] = found["θ^1"]
        checks.append(order_check(f"exact moments, SDE of order {order}: order of the worst", found, order))
        wrong = 3 - order
        checks.append(order_check(f"exact moments, SDE of order {order}: {wrong}", found, wrong, control=True))
    # fixed temperature: SGD of S = 16 … 1, extrapolated to η = 0 by the polynomial through all
    sizes, left = np.array([16, 8, 4, 2, 1]), {}
    for T in (1 / 320, 1 / 640):
        apart = [moments_of_sgd(linear(T * S, int(S), 4), time) - moments_of_sde(linear(T, 1), time, 1) for S in sizes]
        left[T] = np.polyfit(T * sizes, np.array(apart), sizes.size - 1)[-1]
    coarse, fine = left.values()
    what = "fixed T: what stays at η → 0 in E θ³, T over T/2"
    checks.append(bounded(what, coarse[3] / fine[3], 4.0, 0.2))
    share = abs(fine[2] / fine[3])
    checks.append(bounded("fixed T: what stays in E θ², of that in E θ³", share, 0.0, 1e-3))
    checks.append(bounded("fixed T: nothing stays in E θ⁴", abs(fine[4] / fine[3]), 0.0, 1e-3, control=True))
    return checks, curves


def run(settings: Mapping[str, Any], seed: int) -> tuple[list[Check], dict[str, Any]]:
    checks, curves = without_monte_carlo(settings)
    # a network
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 1))
    model = sg.models.MLP([1, settings["width"], 1], "tanh", scale=0.5)
    problem = sg.SGD(model, X, np.sin(2 * X), learning_rate=0.2, batch_size=settings["batch_size"], gamma=0.01)
    theta0 = 2.5 * model.init(rng=2)
    of = {"|θ|²": lambda y: (y**2).sum(axis=1)}
    for order in (1, 2):
        found = sg.weak_error(
            problem, theta0, 0.8, settings["rates"], functions=of, order=order, rng=seed,
            n_paths=settings["paths"][order - 1], refine=2,
        )  # fmt: skip
        curves[f"network, order {order}"] = found["|θ|²"]
        checks.append(order_check(f"network, SDE of order {order}: order", found, order))
        checks.append(order_check(f"network, SDE of order {order}: {3 - order}", found, 3 - order, control=True))
    # SVAG knows no SDE, and finds its mean
    small = linear(0.25, 1)
    report = sg.svag_extrapolation(
        small, [START], 1.0, (1, 2, 4, 8, 16), functions={"θ³": lambda y: y[:, 0] ** 3}, powers=(1, 2),
        n_paths=settings["svag paths"], rng=seed,
    )["θ³"]  # fmt: skip
    right, wrong = (moments_of_sde(small, 1.0, 1, times)[3] for times in (1.0, 2.0))
    checks.append(statistical("SVAG(l), l → ∞: E θ³ of the SDE", report.limit, right, report.stderr))
    checks.append(statistical("SVAG(l), l → ∞: twice the noise", report.limit, wrong, report.stderr, control=True))
    exact = moments_of_sgd(small, 1.0)[3] - right
    checks.append(statistical("SVAG: how far l = 1 is from its limit", report.gap[0], exact, report.gap_stderr[0]))
    checks.append(statistical("SVAG: l = 1 is the limit", report.gap[0], 0.0, report.gap_stderr[0], control=True))
    return checks, {"curves": curves, "svag": report}


def draw(figure: Any, data: dict[str, Any]) -> None:
    axes = figure.subplots(1, 2)
    for name, one in data["curves"].items():
        axes[0].errorbar(one.dts, one.errors, 3 * one.stderr, marker="o", ms=3, lw=1, label=f"{name}: {one.order:.2f}")
    axes[0].set(xscale="log", yscale="log", xlabel="η", ylabel="|E f(SGD) - E f(SDE)|")
    axes[0].legend(fontsize=8)
    report = data["svag"]
    axes[1].errorbar(report.steps, report.values, 3 * report.errors, fmt="o", ms=3, color="#0072B2")
    axes[1].errorbar([0], [report.limit], [3 * report.stderr], fmt="s", ms=4, color="#D55E00", label="l → ∞")
    axes[1].set(xlabel="1/l", ylabel="E θ³ of SVAG(l)")
    axes[1].legend()


CLAIM = Claim(
    name="weak-error",
    statement="the weak error of SGD's SDE is of order 1 in η at fixed S, that of the modified equation of order 2",
    source="Li, Tai & E, JMLR 20 (2019) 40, Theorem 9; Li, Malladi & Arora, NeurIPS 2021, Theorem 4.3",
    quick={
        "time": 1.0, "width": 2, "batch_size": 8, "rates": [0.2, 0.1, 0.05], "paths": [2000, 3000], "svag paths": 10_000
    },
    full={
        "time": 1.0, "width": 4, "batch_size": 8, "rates": [0.2, 0.1, 0.05, 0.025], "paths": [8000, 12_000],
        "svag paths": 50_000,
    },
    run=run,
    draw=draw,
    paper="Li, Tai & E 2019; Li, Malladi & Arora 2021",
    could_fail="The error could fall with another power of η, or the modified equation be no better than the plain "
    "one; SVAG could tend to another law than the SDE of SGD.",
    holds="Smooth functions of θ at a fixed time and batch size; SVAG(l) at a fixed temperature, as l grows.",
    fails_where="At a fixed temperature η/S the error does not vanish with η: third cumulants of the gradients stay.",
    caption="Left: weak errors against η with the fitted orders. Right: SVAG(l) and its limit.",
)  # fmt: skip
