"""What figures draw: the numbers in their lines, their labels, and what they leave alone."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import sgdsde as sg
from sgdsde import ArgumentError, ShapeError, plot

NAMES = ("trajectories", "charge", "charge_gap", "equilibrium", "decomposition", "catch")


def test_matplotlib_is_imported_by_the_first_figure_and_not_before():
    use = "[getattr(plot, name) for name in plot.__all__]"
    code = f"import sys; from sgdsde import plot; {use}; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert set(plot.__all__) == set(NAMES)


def draw(name, runs, law, **options):
    if name == "trajectories":
        return plot.trajectories(runs["SGD"], **options)
    if name == "decomposition":
        return plot.decomposition(sg.decompose(runs["SGD"], law.problem.model), **options)
    if name == "catch":
        found = sg.symmetry.run_and_catch(law.problem, runs["SGD"].y[:2, :4], law.charge.generator)
        return plot.catch(found, **options)
    return getattr(plot, name)(runs, law, **options)


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_draws_where_it_is_told_and_returns_the_axes(name, runs, law, ax):
    assert draw(name, runs, law, ax=ax) is ax
    assert ax.lines and ax.get_xlabel() and ax.get_ylabel()


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_of_its_own_is_made_and_not_shown(name, runs, law, monkeypatch):
    from matplotlib import pyplot as plt

    monkeypatch.setattr(plt, "show", lambda *a, **k: pytest.fail("shown"))
    made = draw(name, runs, law)
    assert made.figure.number in plt.get_fignums() and made.figure.get_axes() == [made]
    assert made.figure.get_size_inches()[0] * made.figure.dpi == pytest.approx(1008)


@pytest.mark.parametrize("name", NAMES)
def test_ax_must_be_axes(name, runs, law):
    with pytest.raises(ArgumentError, match="ax must be"):
        draw(name, runs, law, ax=3)


# --- trajectories -----------------------------------------------------------------------------------------------------


def test_trajectories_are_the_paths_and_their_mean(runs, ax, line):
    run = runs["SGD"]
    plot.trajectories(run, [0, 3], ax=ax)
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), run.t)
    np.testing.assert_array_equal(ax.lines[2].get_ydata(), run.y[2, :, 0])
    np.testing.assert_allclose(line(ax, "mean of y$_{3}$"), run.mean()[:, 3])
    assert ax.get_xlabel() == "t = η · step" and len(ax.lines) == 2 * (5 + 1)
    low = ax.collections[0].get_paths()[0].vertices[:, 1].min()
    assert low == pytest.approx((run.mean() - 2 * run.stderr())[:, 0].min())


def test_trajectories_of_a_function_and_of_a_name(runs, law, ax, line):
    plot.trajectories(runs["SDE"], observable=law.charge, max_paths=2, ax=ax)
    np.testing.assert_allclose(line(ax, f"mean of {law.charge.name}"), law.charge(runs["SDE"].y).mean(axis=0))
    assert len(ax.lines) == 3 and ax.get_xlabel() == "t"
    plot.trajectories(runs["SDE"], 7, observable=law.name, max_paths=0, label="C", color="k", ax=ax)
    np.testing.assert_allclose(line(ax, "C"), runs["SDE"].tracked[law.name][..., 7].mean(axis=0))


def test_trajectories_of_one_path_and_of_moments(problem, ax, line):
    theta = problem.model.init(rng=1)
    one = problem.run(theta, 10, rng=0, t_eval=11)
    plot.trajectories(one, [1, 2], ax=ax)
    assert len(ax.lines) == 2
    np.testing.assert_array_equal(line(ax, "y$_{2}$"), one.y[:, 2])
    moments = problem.run(theta, 10, 6, rng=0, t_eval=11, keep="stats")
    plot.trajectories(moments, 0, label="moments", ax=ax)
    np.testing.assert_allclose(line(ax, "moments"), moments.mean()[:, 0])


def test_stopped_paths_end_the_mean_and_are_counted(problem, ax, line):
    with pytest.warns(sg.DivergenceWarning):
        run = sg.SGD(problem.model, problem.X, problem.Y, learning_rate=1e6).run(
            problem.model.init(rng=1), 30, 3, rng=0, t_eval="steps"
        )
    plot.trajectories(run, 0, ax=ax)
    drawn = line(ax, "mean of y$_{0}$ (3 of 3 paths stopped)")
    assert np.isfinite(drawn[0]) and np.isnan(drawn[-1])


@pytest.mark.parametrize("options, error, about", [
    ({"components": 6}, ArgumentError, "components"),
    ({"components": [0, 1], "color": "red"}, ArgumentError, "color must be None"),
    ({"observable": 3}, ArgumentError, "observable must be"),
    ({"observable": "nothing"}, ArgumentError, "nothing"),
    ({"observable": lambda y: y.sum()}, ShapeError, "observable must map"),
    ({"max_paths": -1}, ArgumentError, "max_paths"),
])  # fmt: skip
def test_trajectories_refuse(runs, ax, options, error, about):
    with pytest.raises(error, match=about):
        plot.trajectories(runs["SGD"], ax=ax, **options)


# --- charges ----------------------------------------------------------------------------------------------------------


def test_a_charge_is_drawn_with_both_laws(runs, law, ax, line, legend):
    run = runs["SGD"]
    plot.charge(run, law, ax=ax)
    report = law.report(run, size=False)
    np.testing.assert_allclose(line(ax, "sgd, dt = 0.05"), law.charge(run.y).mean(axis=0), rtol=1e-12)
    start = law.charge(run.y[0, 0])
    circles, dashed = ax.lines[1], ax.lines[2]
    at = np.searchsorted(report.t, circles.get_xdata())
    assert 5 < at.size <= 10
    np.testing.assert_allclose(circles.get_ydata(), start + report.mean("predicted")[at], rtol=1e-12)
    np.testing.assert_allclose(dashed.get_ydata(), start + report.mean("continuous"), rtol=1e-12)
    bars = ax.containers[0].lines[2][0].get_segments()
    np.testing.assert_allclose(
        [b[1, 1] - b[0, 1] for b in bars], 4 * report.stderr("remainder")[at], rtol=1e-9, atol=1e-15
    )
    assert {"continuous law", "its own one-step means, summed"} < set(legend(ax))
    shaded = [c for c in ax.collections if c.get_alpha() == 0.08]
    assert len(shaded) == 1


def test_many_charges_have_their_labels_and_colours_and_no_shade(runs, law, ax, legend):
    plot.charge(runs, law, ax=ax)
    assert legend(ax)[:3] == ["SGD", "SDE", "fine"]
    solid = [one.get_color() for one in ax.lines if one.get_label() in runs]
    assert len(set(solid)) == 3 and not [c for c in ax.collections if c.get_alpha() == 0.08]


def test_a_charge_alone_needs_no_tracking(problem, law, ax, line):
    run = problem.run(problem.model.init(rng=1), 10, 4, rng=0, t_eval=6)
    plot.charge([run], law.charge, labels=["x"], colors=["k"], ax=ax)
    np.testing.assert_allclose(line(ax, "x"), law.charge(run.y).mean(axis=0))
    with pytest.raises(ArgumentError, match="tracked nothing"):
        plot.charge(run, law, ax=ax)


def test_a_single_path_has_no_band(problem, law, ax, line):
    run = problem.run(problem.model.init(rng=1), 10, rng=0, t_eval=6, track=law)
    plot.charge(run, law, ax=ax)
    np.testing.assert_allclose(line(ax, "sgd, dt = 0.05"), law.charge(run.y), rtol=1e-12)
    assert [c.get_alpha() for c in ax.collections if c.get_alpha()] == [0.08]


def test_the_gap_is_drawn_against_its_prediction(runs, law, ax, line):
    plot.charge_gap(runs, law, ax=ax)
    report = law.report(runs["fine"], size=False)
    np.testing.assert_allclose(line(ax, "fine"), report.mean("gap"), rtol=1e-9, atol=1e-15)
    circles = ax.lines[6]
    at = np.searchsorted(report.t, circles.get_xdata())
    np.testing.assert_allclose(
        circles.get_ydata(), (report.mean("predicted") - report.mean("continuous"))[at], rtol=1e-9
    )
    with pytest.raises(ArgumentError, match="law must be a ChargeLaw"):
        plot.charge_gap(runs, law.charge, ax=ax)


def test_both_sides_of_the_balance(runs, law, ax, line, legend):
    run, gamma = runs["SGD"], law.problem.gamma
    plot.equilibrium({"one": run}, law, ax=ax)
    np.testing.assert_allclose(line(ax, "one"), 2 * gamma * law.charge(run.y).mean(axis=0), rtol=1e-12)
    # Saved at every step, the mean between two times is σ²ρTr[ΣA] at the first of them; residual = 2γC - that.
    before = run.y[:, :-1]
    trace = 2 * gamma * law.charge(before) - law.charge.residual(law.problem, before)
    np.testing.assert_allclose(ax.lines[1].get_ydata(), trace.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(ax.lines[1].get_xdata(), (run.t[1:] + run.t[:-1]) / 2)
    assert legend(ax) == ["one", "2γC", "σ²ρ Tr[ΣA]"]
    with pytest.raises(ArgumentError, match="law must be a ChargeLaw"):
        plot.equilibrium(run, law.charge, ax=ax)


@pytest.mark.parametrize("options, about", [
    ({"labels": ["a"]}, "labels must be 2 texts"),
    ({"labels": "ab"}, "labels must be 2 texts"),
    ({"colors": ["k"]}, "colors must be 2"),
])  # fmt: skip
def test_labels_and_colours_are_counted(runs, law, ax, options, about):
    with pytest.raises(ArgumentError, match=about):
        plot.charge([runs["SGD"], runs["SDE"]], law, ax=ax, **options)


@pytest.mark.parametrize("solutions, about", [([], "at least one"), (3, "solutions must be"), ({"a": [1.0]}, "'a'")])
def test_what_is_no_solution_is_refused(law, ax, solutions, about):
    with pytest.raises(ArgumentError, match=about):
        plot.charge(solutions, law, ax=ax)


def test_a_dict_brings_its_labels(runs, law, ax):
    with pytest.raises(ArgumentError, match="labels must be None"):
        plot.charge(runs, law, labels=["a", "b", "c"], ax=ax)


def test_runs_of_one_method_and_step_are_told_apart(runs, law, ax, legend):
    plot.charge([runs["SDE"], runs["SDE"]], law, ax=ax)
    assert legend(ax)[:2] == ["euler-maruyama, dt = 0.05", "euler-maruyama, dt = 0.05 (2)"]


# --- decomposition ----------------------------------------------------------------------------------------------------


def test_parts_of_a_motion(runs, law, ax, line):
    parts = sg.decompose(runs["SGD"], law.problem.model)
    plot.decomposition(parts, ax=ax)
    np.testing.assert_allclose(line(ax, "along"), parts.length_parallel.mean(axis=0))
    np.testing.assert_allclose(line(ax, "across"), parts.length_orthogonal.mean(axis=0))
    assert ax.get_xlabel() == "t" and ax.get_ylim()[0] == 0


def test_displacements_and_shares(runs, law, ax, line):
    both = {name: sg.decompose(runs[name], law.problem.model) for name in ("SGD", "SDE")}
    plot.decomposition(both, what="displacement", ax=ax)
    far = np.linalg.norm(both["SDE"].displacement_orthogonal, axis=-1)
    np.testing.assert_allclose(line(ax, "SDE, across"), far.mean(axis=0))
    plot.decomposition(both, what="fraction", ax=ax)
    np.testing.assert_allclose(line(ax, "SGD"), both["SGD"].fractions.mean(axis=0))


def test_an_array_has_states_for_times(runs, law, ax):
    plot.decomposition(sg.decompose(runs["SGD"].y[0], law.problem.model), ax=ax)
    assert ax.get_xlabel() == "saved state" and ax.lines[0].get_xdata().tolist() == list(range(21))


def test_what_is_no_decomposition_is_refused(ax):
    with pytest.raises(ArgumentError, match="decomposition must be"):
        plot.decomposition(SimpleNamespace(t=None), ax=ax)
    with pytest.raises(ArgumentError, match="what must be one of"):
        plot.decomposition(None, what="lengths", ax=ax)


@pytest.mark.parametrize("wrong", [None, 1, [], np.ones((3, 2))])
def test_trajectories_want_a_solution(wrong):
    with pytest.raises(ArgumentError, match="solution must be a Solution"):
        plot.trajectories(wrong)


def test_a_charge_wants_a_law_and_a_list_of_colours():
    model = sg.models.DeepLinear([2, 2, 1])
    problem = sg.SGD(model, np.ones((3, 2)), np.ones(3), learning_rate=0.01)
    sol = problem.run(model.init(0), 2, n_paths=2, rng=0)
    charge = sg.Charge(model.symmetries()["B=I"])
    for law in (None, sol, 3):
        with pytest.raises(ArgumentError, match="law must be a ChargeLaw, or a Charge"):
            plot.charge(sol, law)
    with pytest.raises(ArgumentError, match="colors must be 1 colours"):
        plot.charge(sol, charge, colors=3)


# --- run and catch ----------------------------------------------------------------------------------------------------


def test_a_charge_and_its_target_are_drawn_for_the_first_paths(runs, law, ax, line):
    found = sg.symmetry.run_and_catch(law.problem, runs["SGD"].y[:3, :4], law.charge.generator)
    plot.catch(found, most_paths=2, ax=ax)
    assert len(ax.lines) == 4
    np.testing.assert_array_equal(ax.lines[2].get_ydata(), found.charge[1])
    np.testing.assert_array_equal(ax.lines[3].get_ydata(), found.target[1])
    with pytest.raises(ArgumentError, match="run_and_catch"):
        plot.catch(runs["SGD"], ax=ax)
