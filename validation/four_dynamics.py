"""SGD, SVAG, Euler-Maruyama and the implicit midpoint rule have one stationary mean of the charge, at one temperature.

A two-layer network, T = η/S fixed, η = S·T. At each η the four means differ, by terms of order η: the gradient term
η∇LᵀA∇L of the discrete steps, η/8 of it for SVAG(8), what a method makes of its own step. Extrapolated to η → 0 they
agree. Means are averages over time after a burn-in, errors those of independent paths. SGD itself obeys
(4γ - 4ηγ²)⟨C⟩ = η⟨ĝᵀAĝ⟩ at every η (A-FDR), which needs no extrapolation.

Controls: the means before extrapolation; noise of σ² = η/S, twice what it is; isotropic noise of the same trace, under
which the charge diffuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

import sgdsde as sg
from validation.claim import SIGMAS, Check, Claim, bounded, means, statistical
from validation.data import teacher_student

SGD, SVAG, EULER, MIDPOINT = "SGD", "SVAG(8)", "Euler-Maruyama", "implicit midpoint"
DOUBLED, ISOTROPIC = "noise doubled", "isotropic noise"


def run(settings: Mapping[str, Any], seed: int) -> tuple[list[Check], dict[str, Any]]:
    T, sizes, burn = settings["T"], settings["batch_sizes"], settings["burn_in"]
    X, Y = teacher_student(settings["dims"], settings["samples"], label_noise=1.0, seed=seed)
    model = sg.models.DeepLinear(settings["dims"])
    A = model.symmetries()["B=I"]
    charge = sg.Charge(A)

    def problem(S: int, times: float = 1.0) -> sg.SGD:
        return sg.SGD(model, X, Y, learning_rate=times * T * S, batch_size=S, gamma=settings["gamma"])

    first = problem(sizes[0])
    n = max(settings["paths"].values())
    rest = first.run(model.init(rng=seed), round(settings["rest"] / (T * sizes[0])), n, rng=seed + 1000, keep="final")
    starts = rest.y[:, -1]
    trace = float(np.mean([np.trace(first.covariance(theta)) for theta in starts[:100]]))
    isotropic = np.eye(model.dim) * np.sqrt(trace / model.dim)
    # the SDE of temperature T is one for all S; twice the rate at one S is twice T
    equations = {EULER: first.sde(), MIDPOINT: first.sde(), DOUBLED: problem(sizes[0], 2.0).sde()}
    equations[ISOTROPIC] = first.sde(factor=isotropic)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in (SGD, SVAG, *equations)}
    checks = []
    for S in sizes:
        eta = T * S
        n_steps = round(settings["time"] / eta)
        for k, (name, means_of) in enumerate(found.items()):
            paths = settings["paths"][name]
            common = {"n_paths": paths, "rng": seed + 10 * S + k, "t_eval": 81}
            if name == SGD:
                fdr = sg.FluctuationDissipation(problem(S), A)
                solution = problem(S).run(starts[:paths], n_steps, track=fdr, **common)
                balance = fdr.report(solution, burn_in=burn / settings["time"])[f"A-FDR {A.name or 'A0'}"]
                what = f"A-FDR of SGD at η = {eta:g}: ⟨right⟩ of ⟨left⟩"
                checks.append(statistical(what, balance.right.mean, balance.left.mean, balance.difference.stderr))
            elif name == SVAG:
                eight = problem(S).replace(optimizer=sg.optimizers.SVAG(8))
                solution = eight.run(starts[:paths], 8 * n_steps, **common)
            else:
                method = "implicit-midpoint" if name == MIDPOINT else "euler-maruyama"
                span = (0, n_steps * eta)
                solution = sg.solve(equations[name], span, starts[:paths], method=method, dt=eta, **common)
            late = solution.t >= burn * (1 - 1e-9)
            means_of.append(means(charge(solution.y[:, late]).mean(axis=1)))
    etas = T * np.array(sizes)
    limits = {}
    for name, values in found.items():
        mean, error = np.array(values).T
        limits[name] = sg.richardson(etas, mean, error, powers=settings["powers"])
    right = [SGD, SVAG, EULER, MIDPOINT]
    for a, b in combinations(right, 2):
        checks.append(_agree(f"η → 0: {a} and {b}", limits[a], limits[b]))
    for name in right:
        fit = limits[name]
        good = fit.p_value > 1e-6
        checks.append(Check(f"{name}: chi² of the fit, its degrees of freedom", fit.chi2, fit.dof, 0.0, good, how="p"))
    reference = limits[MIDPOINT]
    for name in right:
        fit, error = limits[name], float(np.hypot(limits[name].errors[-1], reference.stderr))
        what = f"before, η = {etas[-1]:g}: {name} and the limit"
        if name in (SGD, EULER):
            checks.append(statistical(what, fit.values[-1], reference.limit, error, control=True))
        else:
            checks.append(bounded(what, fit.values[-1], reference.limit, 0.05 * abs(reference.limit)))
    checks.append(_agree(f"η → 0: {DOUBLED}", limits[DOUBLED], reference, control=True))
    # a charge has almost no noise: its mean over time is nearly the same on every path
    spread = {name: limits[name].errors[0] * settings["paths"][name] ** 0.5 for name in limits}
    for name in (SVAG, EULER, MIDPOINT, ISOTROPIC):
        ratio, what = spread[name] / spread[SGD], f"η = {etas[0]:g}: spread of C over paths / SGD's, {name}"
        checks.append(bounded(what, ratio, 1.0, 3.0, control=name == ISOTROPIC))
    return checks, {"limits": limits, "etas": etas}


def _agree(name: str, a: Any, b: Any, *, control: bool = False) -> Check:
    return statistical(name, a.limit, b.limit, float(np.hypot(a.stderr, b.stderr)), control=control)


def draw(figure: Any, data: dict[str, Any]) -> None:
    ax = figure.subplots()
    grid = np.linspace(0, 1.05 * data["etas"][-1], 100)
    for name, colour in ((SGD, "#D55E00"), (SVAG, "#CC79A7"), (EULER, "#0072B2"), (MIDPOINT, "#009E73")):
        fit = data["limits"][name]
        curve = fit.limit + sum(c * grid**p for c, p in zip(fit.coefficients, fit.powers))
        ax.plot(grid, curve, color=colour, lw=1)
        ax.errorbar(fit.steps, fit.values, SIGMAS * fit.errors, fmt="o", ms=3, color=colour, label=name)
        ax.errorbar([0], [fit.limit], [SIGMAS * fit.stderr], fmt="s", ms=4, color=colour)
    ax.set(xlabel="η = S T, T fixed", ylabel="stationary mean of C, ± 5 standard errors")
    ax.legend()


MANY = {SGD: 512, EULER: 512, SVAG: 96, MIDPOINT: 32, DOUBLED: 64, ISOTROPIC: 64}

CLAIM = Claim(
    name="four-dynamics",
    statement="SGD, SVAG(8), Euler-Maruyama and midpoint agree on the stationary charge, extrapolated at fixed η/S",
    source="Li, Malladi & Arora, NeurIPS 2021 (SVAG); Talay & Tubaro 1990 (extrapolation); Yaida, ICLR 2019 (FDR1)",
    quick={
        "dims": [2, 2, 1], "samples": 64, "T": 0.005, "gamma": 0.05, "batch_sizes": [4, 8, 16, 32], "powers": [1, 2],
        "rest": 60.0, "burn_in": 20.0, "time": 60.0, "paths": MANY,
    },
    full={
        "dims": [3, 4, 2], "samples": 128, "T": 0.0025, "gamma": 0.05, "batch_sizes": [4, 8, 16, 32], "powers": [1, 2],
        "rest": 80.0, "burn_in": 25.0, "time": 85.0, "paths": MANY,
    },
    run=run,
    draw=draw,
    paper="Li, Malladi & Arora 2021; Yaida 2019",
    could_fail="The four extrapolated means of the charge could differ by more than their errors, were one of the "
    "dynamics or the law of the SDE wrong.",
    holds="The stationary mean of a charge at fixed η/S, extrapolated to η = 0.",
    fails_where="At a finite η each dynamics has a mean of its own, η∇LᵀA∇L apart. Twice the noise or isotropic "
    "noise is another SDE.",
    caption="Stationary means of C against η, and their extrapolations.",
)  # fmt: skip
