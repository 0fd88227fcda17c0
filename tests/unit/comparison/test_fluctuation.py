"""The relations hold step by step up to what the state itself changes; at rest both sides are equal."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde.algebra.sparse import entries
from sgdsde.models import DeepLinear, Product
from sgdsde.sgd.optimizers import SVAG, Adam, HeavyBall

X = np.random.default_rng(0).normal(size=(12, 3))
Y = X @ np.random.default_rng(1).normal(size=(3, 2)) + 0.3 * np.random.default_rng(2).normal(size=(12, 2))
MODEL = DeepLinear([3, 2, 2])


def make(**more):
    return sg.SGD(MODEL, X, Y, **{"learning_rate": 0.02, "gamma": 0.05, "batch_size": 2, **more})


def symmetric(rng):
    B = rng.normal(size=(2, 2))
    return MODEL.generator(B + B.T)


@pytest.mark.parametrize("sampling", ["with replacement", "without replacement", "epochs"])
@pytest.mark.parametrize("optimizer", [None, SVAG(2)])
def test_both_sides_differ_by_what_the_state_has_changed(sampling, optimizer):
    """Exactly: the sums telescope, for any sampling, far from rest too."""
    if optimizer is not None and sampling == "epochs":
        return
    problem = make(sampling=sampling, optimizer=optimizer)
    A = {"I": MODEL.symmetries()["B=I"], "any": symmetric(np.random.default_rng(5))}
    fdr = sg.FluctuationDissipation(problem, A)
    run = problem.run(MODEL.init(rng=0), 400, n_paths=3, rng=1, t_eval=5, track=fdr)
    report = fdr.report(run, burn_in=0.0)
    T = run.t[-1] - run.t[0]
    squares = (run.y**2).sum(axis=2)
    change = ((squares[:, 0] - squares[:, -1]) / T).mean()
    assert report["FDR1"].difference.mean == pytest.approx(change, rel=1e-9, abs=1e-12)
    for name, one in A.items():
        C = one.quadratic(run.y)
        change = ((C[:, 0] - C[:, -1]) / T).mean()
        assert report[f"A-FDR {name}"].difference.mean == pytest.approx(change, rel=1e-8, abs=1e-12)
        assert abs(report[f"A-FDR {name}"].left.mean) > 1e-4


def test_the_sides_are_what_they_are_called():
    """One step by hand, with gradients of the batch that was drawn."""
    problem = make(batch_size=12, replacement=False)
    A = symmetric(np.random.default_rng(5))
    fdr = sg.FluctuationDissipation(problem, A)
    theta = MODEL.init(rng=0)
    run = problem.run(theta, 2, rng=1, t_eval="steps", track=fdr)
    report = fdr.report(run, burn_in=0.0)
    wanted = {"FDR1": [0.0, 0.0], "A": [0.0, 0.0]}
    for k in range(2):
        x, g = run.y[k], problem.gradient(run.y[k])
        full = g + 0.1 * x
        wanted["FDR1"][0] += 0.5 * 2 * x @ full
        wanted["FDR1"][1] += 0.5 * 0.02 * full @ full
        wanted["A"][0] += 0.5 * (0.2 - 4 * 0.02 * 0.05**2) * A.quadratic(x)
        wanted["A"][1] += 0.5 * 0.02 * A.quadratic(g)
    for name, one in zip(("FDR1", "A"), report.values()):
        assert [one.left.mean, one.right.mean] == pytest.approx(wanted[name], rel=1e-9)


@pytest.mark.parametrize("optimizer", [None, HeavyBall(0.7)])
def test_at_rest_both_sides_are_equal(optimizer):
    eta = 0.02 if optimizer is None else 0.006
    problem = make(learning_rate=eta, optimizer=optimizer)
    fdr = sg.FluctuationDissipation(problem, {"B=I": MODEL.symmetries()["B=I"]})
    run = problem.run(MODEL.init(rng=0), 60_000, n_paths=8, rng=3, t_eval=401, track=fdr)
    report = fdr.report(run)
    assert len(report) == (1 if optimizer else 2)
    for one in report.values():
        assert abs(one.left.mean) > 5 * one.difference.stderr and abs(one.z) < 5 and one.difference.reliable
        assert one.left.mean == pytest.approx(one.right.mean, rel=0.05)
    text = repr(report)
    assert "A-FDR B=I" in text and "std. error" in text and "tau (t)" in text and "\nbalanced: no relation" in text
    assert report.verdict == report["A-FDR B=I"].verdict == "balanced"
    # 2γC = σ²Tr[ΣA] is the law of small η; the relation needs none: it sees a wrong γ at once
    fdr.problem = problem.replace(gamma=0.06)
    wrong = fdr.report(run)
    assert abs(wrong["A-FDR B=I"].z) > 5 and wrong.verdict == wrong["A-FDR B=I"].verdict == "unbalanced"


def test_a_run_that_has_not_come_to_rest_is_seen():
    problem = make()
    fdr = sg.FluctuationDissipation(problem)
    theta = MODEL.init(rng=0) * np.repeat([1.0, 3.0], [6, 4])
    run = problem.run(theta, 200, n_paths=200, rng=3, t_eval=41, track=fdr)
    report = fdr.report(run, burn_in=0.0)
    assert abs(report["A-FDR B=I"].z) > 5 and report.verdict == "unbalanced" and "not at rest" in repr(report)


def test_few_batches_are_inconclusive():
    problem = make()
    fdr = sg.FluctuationDissipation(problem)
    run = problem.run(MODEL.init(rng=0), 2000, n_paths=2, rng=3, t_eval=9, track=fdr)
    report = fdr.report(run)
    assert report.verdict == report["A-FDR B=I"].verdict == "inconclusive" and "too few" in repr(report)


def test_the_sde_obeys_them_too_and_others_are_refused():
    problem = make()
    fdr = sg.FluctuationDissipation(problem)
    sol = sg.solve(problem.sde(), (0, 8), MODEL.init(rng=0), n_paths=2, rng=0, t_eval=5, track=fdr)
    C = MODEL.symmetries()["B=I"].quadratic(sol.y)
    change = ((C[:, 0] - C[:, -1]) / 8).mean()
    assert fdr.report(sol, burn_in=0.0)["A-FDR B=I"].difference.mean == pytest.approx(change, rel=1e-7)
    adam = problem.replace(optimizer=Adam())
    with pytest.raises(sg.ArgumentError, match="the relations hold for .*, not for 'adam'"):
        adam.run(MODEL.init(rng=0), 3, track=sg.FluctuationDissipation(adam))


def test_what_cannot_be_reported():
    problem = make()
    fdr = sg.FluctuationDissipation(problem)
    run = problem.run(MODEL.init(rng=0), 30, rng=0, track=fdr)
    with pytest.raises(sg.ArgumentError, match="saved 3 times after the burn-in"):
        fdr.report(run)
    with pytest.raises(sg.ArgumentError, match="solution must come from a run with track="):
        sg.FluctuationDissipation(problem).report(run)
    with pytest.raises(sg.ArgumentError, match=r"generators\['A0'\] must be a symmetric Generator of 10 components"):
        sg.FluctuationDissipation(problem, [3.0])
    with pytest.raises(sg.ArgumentError, match="problem must be an SGD problem"):
        sg.FluctuationDissipation(MODEL)


@pytest.mark.parametrize(
    "A",
    [
        *DeepLinear([3, 2, 4, 2]).symmetries().values(),
        *Product(width=2, depth=2).symmetries().values(),
        sg.scaling(4),
        sg.Generator.from_matrix(np.arange(9.0).reshape(3, 3)),
        symmetric(np.random.default_rng(0)),
    ],
    ids=lambda A: A.name or "dense",
)
def test_entries_are_those_of_the_matrix(A):
    rows, columns, values = entries(A)
    dense = np.zeros((A.dim, A.dim))
    dense[rows, columns] = values
    assert np.array_equal(dense, A.matrix) and np.all(values != 0) and len(set(zip(rows, columns))) == values.size
