"""Four places where the SDE of SGD says something else than SGD does, each foretold by a law of SGD itself.

1. Collapse of uw = v on Gaussian data: near 0, d ln|v|/dt is (2/η)E ln|1 + 2ηm̂| of SGD and 4(β₂ - Tα₃), T = η/S, of
   the SDE. At a small ratio of signal to noise they agree; at k = s = 1 the SDE collapses from T = 1/3 on, SGD never.
2. All samples in every batch: no noise, an SDE that is gradient flow, and charges that SGD moves by η²∇LᵀA∇L a step.
3. Early training, where a step is mostly its mean: the same term beside the noise's.
4. Plain Euler-Maruyama at heavy-tailed states: the equation has its solution, the method leaves the numbers.

Controls: each with the law of the other side.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

import sgdsde as sg
from sgdsde.theory import critical_learning_rate, sde_exponent, sgd_exponent_gauss
from validation.claim import Check, Claim, at_least, at_most, bounded, means, statistical

PAIR = sg.models.Product()


def collapse(settings: Mapping[str, Any], seed: int) -> tuple[list[Check], dict[str, Any]]:
    """Growth of ln|v| from v = 1e-24, where the network is linear in u + w."""
    checks: list[Check] = []
    eta, n_paths = settings["eta"], settings["exponent paths"]
    for k in (1.0, 0.1):
        law = sg.models.uw_gauss(k, 1.0)
        problem = sg.SGD(PAIR, law, learning_rate=eta if k == 1.0 else 0.05)
        h, start = problem.learning_rate, np.full(2, 1e-12)
        n = settings["exponent steps"] if k == 1.0 else 100
        both = {
            "SGD": problem.run(start, n, n_paths=n_paths, rng=seed),
            "SDE": sg.solve(
                problem.sde(),
                (0, n * h),
                start,
                dt=h / (1000 if k == 1.0 else 20),
                method="milstein",
                n_paths=n_paths,
                rng=seed,
            ),
        }
        told = {"SGD": sgd_exponent_gauss(k, 1.0, h), "SDE": sde_exponent(law, h)}
        for (name, found), other in zip(both.items(), ("SDE", "SGD")):
            log = np.log(np.abs(found.y[..., 0] * found.y[..., 1]))
            mean, error = means((log[:, -1] - log[:, 0]) / (n * h))
            who = f"k={k:g}, η={h:g}, {name}: d ln|v|/dt"
            checks.append(statistical(who, mean, told[name], error))
            if k == 1.0:
                checks.append(statistical(f"{who}, that of the {other}", mean, told[other], error, control=True))
    for k in (0.05, 0.1, 0.2, 1.0):
        law = sg.models.uw_gauss(k, 1.0)
        ends = critical_learning_rate(lambda eta, k=k: sgd_exponent_gauss(k, 1.0, eta)), law.beta2 / law.alpha3
        checks.append(
            bounded(f"k={k:g}: critical η of the SDE over SGD's", ends[1] / ends[0], 1.0, 0.15, limit=k > 0.5)
        )
    at = np.geomspace(0.01, 2.0, 60)
    curves = {
        k: (at, [sgd_exponent_gauss(k, 1.0, x) for x in at], [sde_exponent(sg.models.uw_gauss(k, 1.0), x) for x in at])
        for k in (0.1, 1.0)
    }
    return checks, {"curves": curves}


def charges(settings: Mapping[str, Any], seed: int) -> tuple[list[Check], dict[str, Any]]:
    rng = np.random.default_rng(seed)
    model = sg.models.DeepLinear([4, 3, 2])
    X = rng.standard_normal((24, 4))
    Y = X @ rng.standard_normal((4, 2)) + 0.3 * rng.standard_normal((24, 2))
    A = model.symmetries()["B=I"]
    start = A.exp(-0.4, model.init(seed))  # a large first matrix: the gradient is mostly that of the second
    full = sg.SGD(model, X, Y, learning_rate=0.02, batch_size=24, replacement=False)
    run = full.run(start, settings["steps"], t_eval="steps")
    C = A.quadratic(run.y)
    foretold = C[0] + np.append(
        0.0, np.cumsum([full.learning_rate**2 * A.quadratic(full.gradient(x)) for x in run.y[:-1]])
    )
    moved = float(np.abs(foretold - C[0]).max())
    flow = sg.solve(full.sde(), (0, run.t[-1]), start, dt=0.002, method="implicit-midpoint")
    rest = float(np.abs(A.quadratic(flow.y) - C[0]).max())
    apart = float(abs(C[-1] - A.quadratic(flow.y)[-1])) / moved
    checks = [
        at_most(
            "full batch: C of SGD less Σ η²∇LᵀA∇L, of what it moved", float(np.abs(C - foretold).max()) / moved, 1e-10
        ),
        at_most("full batch: C of the SDE, which is a gradient flow, of what SGD's moved", rest / moved, 1e-6),
        at_most("full batch: C of SGD less that of the SDE, at the end", apart, 0.05, control=True),
    ]

    noisy = full.replace(batch_size=4, replacement=True)
    early = noisy.run(start, settings["early"], n_paths=settings["paths"], rng=seed, t_eval="steps").y
    eta, mu = noisy.learning_rate, A.eigenvalues
    push, step = np.zeros(len(early)), np.zeros(len(early))
    for x in np.moveaxis(early[:, :-1], 1, 0):
        for i, one in enumerate(x):
            mean, var = noisy.gradient_moments(one, A.to_eigenbasis)
            push[i] += eta * 2 * noisy.noise_scale * float(mu @ var)
            step[i] += eta**2 * float(mu @ mean**2)
    change = A.quadratic(early[:, -1]) - A.quadratic(early[:, 0])
    share = float(step.mean() / push.mean())
    off, error = means(change - push - step)
    alone, alone_error = means(change - push)
    checks += [
        statistical("early training: change of C of SGD less noise's and η²∇LᵀA∇L", off, 0.0, error),
        statistical("early training: less noise's alone, the SDE's", alone, 0.0, alone_error, control=True),
        at_least("early training: |η∇LᵀA∇L| over |2σ²Tr[ΣA]|", abs(share), 0.1),
    ]
    return checks, {"full": (run.t, C, foretold, flow.t, A.quadratic(flow.y))}


def explosion(settings: Mapping[str, Any], seed: int) -> list[Check]:
    problem = sg.SGD(PAIR, sg.models.uw_gauss(1.0, 1.0), learning_rate=0.1)
    options = {"n_paths": 100, "rng": seed, "dt": 0.01, "method": "euler-maruyama", "keep": "all"}
    span, start = (0, settings["heavy time"]), np.array([1.0, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.DivergenceWarning)
        plain = sg.solve(problem.sde(), span, start, **options)
        short = sg.solve(problem.sde(), span, start, step_size="auto", **options)
    return [
        at_least("T=0.1: of 100 paths of plain Euler-Maruyama, those that leave the numbers", plain.n_diverged, 20),
        at_most("T=0.1: the same with steps that shrink where noise grows", short.n_diverged, 0),
    ]


def run(settings: Mapping[str, Any], seed: int) -> tuple[list[Check], dict[str, Any]]:
    one, data = collapse(settings, seed)
    two, more = charges(settings, seed)
    return one + two + explosion(settings, seed), data | more


def draw(figure: Any, data: dict[str, Any]) -> None:
    left, right = figure.subplots(1, 2)
    for (k, (eta, sgd, sde)), style in zip(data["curves"].items(), ("--", "-")):
        left.plot(eta, np.array(sgd) / float(k), style, color="#0072B2", label=f"SGD, k = {float(k):g}")
        left.plot(eta, np.array(sde) / float(k), style, color="#D55E00", label=f"SDE, k = {float(k):g}")
    left.axhline(0, color="#999999", lw=0.8)
    left.set(xscale="log", ylim=(-8, 5), xlabel="η = T", ylabel="(d ln|v|/dt) / k", title="collapse below zero")
    left.legend()
    t, C, foretold, t_flow, flow = data["full"]
    right.plot(t, C, color="#0072B2", lw=3, alpha=0.5, label="SGD")
    right.plot(t, foretold, "--", color="#000000", label="Σ η²∇LᵀA∇L")
    right.plot(t_flow, flow, color="#D55E00", label="SDE")
    right.set(xlabel="t", ylabel="C", title="all samples in every batch")
    right.legend()


CLAIM = Claim(
    name="where-the-sde-fails",
    statement="where the SDE of SGD is not its limit, laws of discrete SGD say so beforehand, and by how much",
    source="exact laws of a step of SGD; Ziyin, Li & Ueda 2023, arXiv 2308.06671 (the collapse that the SDE predicts)",
    quick={"eta": 0.6, "exponent paths": 1000, "exponent steps": 12, "steps": 200, "early": 8, "paths": 200,
           "heavy time": 100.0},
    full={"eta": 0.6, "exponent paths": 4000, "exponent steps": 12, "steps": 400, "early": 12, "paths": 600,
          "heavy time": 200.0},
    run=run,
    draw=draw,
    paper="Ziyin, Li & Ueda 2023, law of balance",
    could_fail="SGD could collapse where the SDE does, hold still in charge when it has no noise, or follow the SDE's "
    "law of a charge early on; Euler-Maruyama could hold out.",
    holds="The laws of discrete SGD, at every learning rate. The SDE's collapse where k² is small beside the noise.",
    fails_where="The SDE at k = 1: it collapses from T = 1/3 on, SGD at no learning rate.",
    deviation="A transition to collapse at T_c is a statement on the SDE. "
    "Gaussian data with k = s = 1 have none for SGD.",
    caption="Left: rate of ln|v| near v = 0. Right: a charge when every batch is the whole data set.",
)  # fmt: skip
