"""`python docs/_figures/symmetries.py [name ...]`: the pictures of docs/symmetries, SVG files in docs/_static.

Each has gradient flow, SGD and the SDE of SGD in three panels on the same axes, from the same start. Seeds are fixed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import matplotlib
import numpy as np

import sgdsde as sg

STATIC = Path(__file__).parents[1] / "_static"
PANELS = ("gradient flow", "SGD", "SDE")
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")


class Picture(NamedTuple):
    """What is run, and the quantities that are drawn: name -> function of states (..., d)."""

    problem: sg.SGD
    theta: np.ndarray
    n_steps: int
    curves: dict[str, Callable]
    ylabel: str = "charge"


def data(n: int, n_in: int, n_out: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, n_in))
    return X, X @ rng.standard_normal((n_in, n_out)) + 0.7 * rng.standard_normal((n, n_out))


def charges(model, *names: str) -> dict[str, Callable]:
    return {name: sg.Charge(model.symmetries()[name]) for name in names}


def rescaling() -> Picture:
    X, Y = data(20, 1, 1)
    model = sg.models.Product()
    problem = sg.SGD(model, X[:, 0], Y[:, 0], learning_rate=0.02, batch_size=1, gamma=0.01)
    return Picture(problem, np.array([2.0, 0.5]), 1500, {"u² - w²": sg.Charge(model.symmetries()["W1/W2"])})


def linear_layers() -> Picture:
    X, Y = data(20, 3, 2)
    model = sg.models.DeepLinear([3, 2, 2])
    problem = sg.SGD(model, X, Y, learning_rate=0.01, batch_size=1, gamma=0.02)
    return Picture(problem, 1.3 * model.init(4), 1500, charges(model, "B[0,0]", "B[0,1]", "B[1,1]"))


def relu() -> Picture:
    X, Y = data(20, 2, 1)
    model = sg.models.MLP([2, 3, 1], "relu")
    problem = sg.SGD(model, X, Y, learning_rate=0.01, batch_size=1, gamma=0.01)
    return Picture(problem, 1.5 * model.init(2), 1500, charges(model, "W1/W2[0]", "W1/W2[1]", "W1/W2[2]"))


def scaling() -> Picture:
    X, Y = data(20, 4, 1)
    model = sg.models.ScaleInvariant([4, 1])
    problem = sg.SGD(model, X, Y, learning_rate=0.02, batch_size=1)
    return Picture(problem, model.init(1), 1500, {"‖θ‖²": lambda y: np.sum(y**2, axis=-1)}, "‖θ‖²")


def rotation() -> Picture:
    model = sg.models.RadialNetwork([1, 2, 1])
    X, Y = data(20, 1, 1)
    problem = sg.SGD(model, X, Y, learning_rate=0.02, batch_size=1, gamma=0.02)

    def angle(rows: slice) -> Callable:
        return lambda y: np.unwrap(np.arctan2(y[..., rows][..., 1], y[..., rows][..., 0]), axis=-1)

    curves = {"angle of V": angle(slice(0, 2)), "angle of U": angle(slice(2, 4))}
    return Picture(problem, np.array([1.0, 0.3, 0.2, 0.9]), 1500, curves, "angle")


def double_rotation() -> Picture:
    X, Y = data(20, 1, 1)
    model = sg.models.Product(2)
    problem = sg.SGD(model, X[:, 0], Y[:, 0], learning_rate=0.02, batch_size=1, gamma=0.01)
    curves = charges(model, "W1/W2[0]", "W1/W2[1]", "mixing(0,1)", "crossing(0,1)")
    return Picture(problem, np.array([1.6, 0.2, 0.4, 0.9]), 1500, curves)


def translation() -> Picture:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((20, 2))
    model = sg.models.SoftmaxRegression(2, 3)
    problem = sg.SGD(model, X, rng.integers(0, 3, 20), learning_rate=0.1, batch_size=1, gamma=0.01)
    along = model.symmetries()
    curves = {name: (lambda y, b=along[name].shift: y @ b) for name in ("b1", "W1[:,0]", "W1[:,1]")}
    return Picture(problem, model.init(3) + 1.0, 1000, curves, "b·θ")


def approximate() -> Picture:
    X, Y = data(20, 2, 2)
    model, linear = (sg.models.MLP([2, 2, 2], kind, biases=False) for kind in ("tanh", "identity"))
    A = linear.symmetries()["B=I"]
    problem = sg.SGD(model, 0.4 * X, 0.4 * Y, learning_rate=0.05, batch_size=1, gamma=0.002)
    return Picture(problem, 1.5 * model.init(1), 2000, {"‖U‖² - ‖V‖²": sg.Charge(A)})


PICTURES = {f.__name__: f for f in (
    rescaling, linear_layers, relu, scaling, rotation, double_rotation, translation, approximate)}  # fmt: skip


def dynamics(picture: Picture, n_times: int = 76) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Times, and the states (n_times, d) of each of `PANELS`."""
    problem, theta = picture.problem, picture.theta
    eta = problem.learning_rate
    t = eta * np.unique(np.linspace(0, picture.n_steps, n_times).round())

    def slope(y):
        return -problem.gradient(y) - 2 * problem.gamma * y

    flow = [theta]
    for _ in range(picture.n_steps):  # the explicit midpoint rule at h = η: an error of order η², also across kinks
        y = flow[-1]
        flow.append(y + eta * slope(y + 0.5 * eta * slope(y)))

    states = {
        "gradient flow": np.array(flow)[np.rint(t / eta).astype(int)],
        "SGD": problem.run(theta, picture.n_steps, rng=1, t_eval=t).y,
        "SDE": sg.solve(problem.sde(), (0, t[-1]), theta, dt=eta / 2, rng=2, t_eval=t).y,
    }
    return t, states


def values(name: str) -> tuple[np.ndarray, dict[str, dict[str, np.ndarray]], str]:
    """What the picture `name` shows: times, and panel -> curve -> values."""
    picture = PICTURES[name]()
    t, states = dynamics(picture)
    shown = {panel: {label: f(y) for label, f in picture.curves.items()} for panel, y in states.items()}
    return t, shown, picture.ylabel


def draw(name: str, folder: Path = STATIC) -> Path:
    from matplotlib.figure import Figure

    matplotlib.rcParams.update({"svg.hashsalt": name, "svg.fonttype": "none", "font.size": 9})
    t, shown, ylabel = values(name)
    figure = Figure(figsize=(8.4, 2.9), layout="constrained")
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    for axes, panel in zip(panels, PANELS, strict=True):
        for color, (label, y) in zip(COLORS, shown[panel].items(), strict=False):
            axes.plot(t, y, color=color, lw=1.4, label=label)
        axes.set(title=panel, xlabel="time t = η·step")
        axes.grid(alpha=0.3, lw=0.5)
    panels[0].set_ylabel(ylabel)
    panels[0].legend(fontsize=8)
    path = folder / f"symmetry_{name}.svg"
    figure.savefig(path, metadata={"Date": None})
    return path


if __name__ == "__main__":
    for word in [w for w in sys.argv[1:] if w in PICTURES] or PICTURES:
        print(draw(word))
