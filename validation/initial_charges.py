"""Charges of a two-layer network at a random start: how they are spread, and that descent leaves them so.

U (m, h) with entries N(0, 1/h), V (h, n) with N(0, 1/n): Q = ‖U‖² - ‖V‖² has mean m - h and variance 2m/h + 2h/n, the
difference of two χ² sums, and is nearly Gaussian for large layers. So a random start picks one of many values of Q, and
gradient descent at a small learning rate ends where it began. SGD with noise in the labels forgets it.

Controls: twice the variance; the mean of m and h exchanged. Limits: layers of one unit, far from Gaussian; SGD.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import stats

import sgdsde as sg
from validation.claim import Check, Claim, at_least, at_most, means, statistical

SIZES = [(100, 100, 100), (100, 200, 100), (200, 100, 100)]


def drawn(model: sg.models.DeepLinear, n_starts: int, seed: int) -> np.ndarray:
    """Q of random starts."""
    A = model.symmetries()["B=I"]
    return np.array([A.quadratic(model.init(10_000_000 * seed + k)) for k in range(n_starts)])


def run(settings: Mapping[str, Any], seed: int) -> tuple[list[Check], dict[str, Any]]:
    checks, panels = [], {}
    for m, h, n in SIZES:
        Q = drawn(sg.models.DeepLinear([n, h, m]), settings["starts"], seed)
        mean, var = m - h, 2 * m / h + 2 * h / n
        who = f"(m, h, n) = ({m}, {h}, {n})"
        found, error = means(Q)
        checks.append(statistical(f"{who}: mean of Q", found, mean, error))
        if m != h:
            checks.append(statistical(f"{who}: mean of Q, m and h exchanged", found, -mean, error, control=True))
        found, error = Q.var(ddof=1), var * np.sqrt(2 / (Q.size - 1))
        checks.append(statistical(f"{who}: variance of Q", found, var, error))
        checks.append(statistical(f"{who}: variance of Q, twice that", found, 2 * var, error, control=True))
        for words, factor, kind in (("that Gaussian", 1, {}), ("twice its variance", 2, {"control": True})):
            p = stats.kstest(Q, stats.norm(mean, np.sqrt(factor * var)).cdf).pvalue
            checks.append(at_least(f"{who}: Kolmogorov-Smirnov p, {words}", p, 1e-3, **kind))
        panels[who] = Q, mean, np.sqrt(var)
    Q = drawn(sg.models.DeepLinear([1, 1, 2]), settings["starts"], seed)
    p = stats.kstest(Q, stats.norm(1.0, np.sqrt(6.0)).cdf).pvalue
    checks.append(at_least("(m, h, n) = (2, 1, 1): Kolmogorov-Smirnov p, that Gaussian", p, 1e-3, limit=True))

    rng, small = np.random.default_rng(seed), sg.models.DeepLinear([4, 3, 3])
    X = rng.standard_normal((40, 4))
    Y = X @ rng.standard_normal((4, 3)) + rng.standard_normal((40, 3))
    A = small.symmetries()["B=I"]
    starts = np.array([small.init(k) for k in range(settings["trained"])])
    ends = {}
    for name, how in (("gradient descent", {"batch_size": 40, "replacement": False}), ("SGD", {"batch_size": 1})):
        problem = sg.SGD(small, X, Y, learning_rate=settings["eta"], **how)
        found = problem.run(starts, settings["steps"], n_paths=len(starts), rng=seed)
        before, after = A.quadratic(found.y[:, 0]), A.quadratic(found.y[:, -1])
        moved = float(np.abs(after - before).mean() / before.std())
        kind = {"limit": True} if name == "SGD" else {}
        checks.append(at_most(f"{name}: mean |change of Q| in training over the spread of starts", moved, 0.05, **kind))
        if name != "SGD":
            gained = float(problem.loss(found.y[:, -1]).mean() / problem.loss(found.y[:, 0]).mean())
            checks.append(
                at_most("gradient descent: loss after over loss before, so that something was learnt", gained, 0.6)
            )
        ends[name] = before, after
    return checks, {"panels": panels, "ends": ends}


def draw(figure: Any, data: dict[str, Any]) -> None:
    left, right = figure.subplots(1, 2)
    for (who, (Q, mean, std)), colour in zip(data["panels"].items(), ("#0072B2", "#009E73", "#CC79A7")):
        left.hist(Q, bins=40, density=True, color=colour, alpha=0.5, label=who.partition(" = ")[2])
        at = np.linspace(mean - 4 * std, mean + 4 * std, 200)
        left.plot(at, stats.norm(mean, std).pdf(at), "--", color="#000000", lw=1)
    left.set(xlabel="Q at the start", ylabel="density", title="random starts")
    left.legend(title="(m, h, n)")
    for (name, (before, after)), colour in zip(data["ends"].items(), ("#000000", "#0072B2")):
        right.plot(before, after, ".", ms=3, color=colour, label=name)
    right.axline((0, 0), slope=1, color="#999999", lw=0.8)
    right.set(xlabel="Q before training", ylabel="Q after", title="training")
    right.legend()


CLAIM = Claim(
    name="initial-charges",
    statement="random starts spread the charge of a two-layer network like a Gaussian of mean m - h and variance "
    "2m/h + 2h/n, and gradient descent keeps each where it began",
    source="Zhao, Ganev, Walters, Yu, Dehmamy, ICLR 2023, arXiv 2210.17216, figures 4 and 5 (Xavier initialisation)",
    quick={"starts": 600, "trained": 60, "eta": 0.01, "steps": 1000},
    full={"starts": 2000, "trained": 300, "eta": 0.005, "steps": 3000},
    run=run,
    draw=draw,
    paper="Zhao et al. 2023, conserved quantities",
    could_fail="Mean and variance could be others, or tails heavier than a Gaussian's; descent could pull all starts "
    "to one value.",
    holds="Mean and variance for every size, the Gaussian for large layers; conservation up to O(η) under gradient "
    "descent.",
    fails_where="Layers of a few units, where χ² shows. SGD with noise in the labels, whose charges run to the noise "
    "equilibrium wherever they began.",
    deviation="The paper's Q is VVᵀ - UᵀU, the other sign. A Kolmogorov-Smirnov test at p = .01 for three sizes and "
    "three seeds would raise a false alarm in 9 % of runs: p = .001 is asked for.",
    caption="Left: histograms and the Gaussians of theory, dashed. Right: each point is a start.",
)
