"""A small problem, its runs, and a watch over matplotlib's settings."""

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

import sgdsde as sg

TIMES = np.linspace(0, 1, 21)


@pytest.fixture(scope="session")
def problem():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(6, 2)), rng.normal(size=(6, 1))
    return sg.SGD(sg.models.DeepLinear([2, 2, 1]), X, Y, learning_rate=0.05, gamma=0.1)


@pytest.fixture(scope="session")
def law(problem):
    return sg.ChargeLaw(sg.Charge(problem.model.symmetries()["B=I"]), problem)


@pytest.fixture(scope="session")
def runs(problem, law):
    theta = problem.model.init(rng=1)
    common = {"n_paths": 5, "t_eval": TIMES, "track": law}
    return {
        "SGD": problem.run(theta, 20, rng=0, **common),
        "SDE": sg.solve(problem.sde(), (0, 1), theta, rng=1, **common),
        "fine": sg.solve(problem.sde(), (0, 1), theta, dt=0.0125, rng=2, **common),
    }


@pytest.fixture(autouse=True)
def settings_are_left_alone():
    from matplotlib import pyplot as plt

    before = dict(matplotlib.rcParams)
    yield
    after = dict(matplotlib.rcParams)
    plt.close("all")
    assert before == after


@pytest.fixture
def ax():
    from matplotlib.figure import Figure

    return Figure().subplots()


@pytest.fixture
def legend():
    """legend(ax): its texts."""
    return lambda ax: [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.fixture
def line():
    """line(ax, label): the y values of the line with this label."""

    def find(ax, label):
        (found,) = [one for one in ax.lines if one.get_label() == label]
        return np.asarray(found.get_ydata())

    return find
