"""`sgdsde demo`: what it writes, that its numbers hold together, and how it refuses."""

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.special import stdtrit

import sgdsde as sg
from sgdsde import cli

FILES = ("figure.png", "numbers.npz", "table.txt")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A small data set, so that many paths take a second."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    Y = X @ rng.normal(size=(3, 2)) + 0.5 * rng.normal(size=(20, 2))
    path = tmp_path_factory.mktemp("data") / "own.npz"
    np.savez(path, X=X, Y=Y)
    return path


@pytest.fixture(scope="module")
def done(data, tmp_path_factory):
    """One run on the small data: folder, and what was printed."""
    out = tmp_path_factory.mktemp("out") / "made" / "here"
    command = [sys.executable, "-m", "sgdsde", "demo", "--data", str(data), "--out", str(out)]
    options = ["--paths", "24", "--steps", "2400", "--gamma", "0.1"]
    run = subprocess.run([*command, *options], capture_output=True, text=True, check=False, encoding="utf-8")
    assert run.returncode == 0, run.stderr
    return out, run


@pytest.fixture(scope="module")
def numbers(done):
    with np.load(done[0] / "numbers.npz") as file:
        return dict(file)


def test_a_table_a_figure_and_numbers_are_written_where_it_says(done):
    out, run = done
    assert sorted(p.name for p in out.iterdir()) == list(FILES)
    assert all(str(out / name) in run.stdout for name in FILES)
    assert run.stdout.startswith((out / "table.txt").read_text(encoding="utf-8"))
    assert max(map(len, run.stdout.splitlines()[:-1])) <= 126
    assert "[9/9]" in run.stderr and "100 %" in run.stderr and "Traceback" not in run.stderr


def test_the_figure_has_four_panels_and_is_large_enough(done):
    from matplotlib.image import imread

    height, width = imread(done[0] / "figure.png").shape[:2]
    assert width >= 1500 and height >= 1100


def test_every_kind_of_line_has_a_sentence(done):
    table = (done[0] / "table.txt").read_text(encoding="utf-8")
    for section in range(1, 7):
        text = table.partition(f"\n{section}. ")[2].partition(f"\n{section + 1}. ")[0]
        assert "measured" in text and ("Each line:" in text or "The line:" in text)


def test_measured_is_predicted(numbers):
    # 24 paths: |z| is Student's t with at least 23 degrees of freedom; 13 lines at 1e-7 each. The lines that compare
    # SGD with its SDE may differ by O(η) besides and are left out.
    labels, z = numbers["table_label"], numbers["table_z"]
    ours = [not label.endswith(": SGD, SDE") for label in labels]
    assert np.isfinite(z).sum() == 13
    assert np.nanmax(np.abs(z[ours])) < stdtrit(23, 1 - 5e-8)


def test_exact_lines_are_exact_to_rounding(numbers):
    exact = np.isnan(numbers["table_z"])
    assert exact.sum() == 2
    assert np.all(numbers["table_measured"][exact] <= numbers["table_error"][exact])
    assert np.all(numbers["table_error"][exact] < 1e-9)


def test_the_gap_of_the_continuous_law_shrinks_with_dt(numbers):
    def gap(name):
        part = numbers[f"{name}_predicted"] - numbers[f"{name}_continuous"]
        return part[:, -1].mean()

    ratio = gap("sde_euler_maruyama_dt_eta") / gap("sde_euler_maruyama_dt_eta_4")
    assert 3 < ratio < 6
    (row,) = np.flatnonzero(numbers["table_label"] == "gap at dt = η over gap at dt = η/4")
    assert numbers["table_predicted"][row] == pytest.approx(ratio, rel=1e-12)


def test_the_parts_add_up_and_the_curves_share_their_times(numbers):
    names = ("sgd", "sde_euler_maruyama_dt_eta", "sde_euler_maruyama_dt_eta_4", "sde_milstein_symmetric_dt_eta")
    for name in names:
        np.testing.assert_allclose(numbers[f"{name}_t"], numbers["sgd_t"], rtol=1e-12)
        moved = numbers[f"{name}_charge"] - numbers[f"{name}_charge"][:, :1]
        np.testing.assert_allclose(numbers[f"{name}_delta"], moved, atol=1e-9)
        assert numbers[f"{name}_charge"][0, 0] == pytest.approx(numbers["sgd_charge"][0, 0], rel=1e-14)
    parts = numbers["sgd_noise"] + numbers["sgd_gradient"] + numbers["sgd_decay"]
    np.testing.assert_allclose(numbers["sgd_predicted"], parts, rtol=1e-12)
    mil = "sde_milstein_symmetric_dt_eta"
    own = numbers[f"{mil}_predicted"] - sum(numbers[f"{mil}_{part}"] for part in ("noise", "gradient", "decay"))
    assert np.abs(own[:, -1]).max() > 0


def test_two_starts_lie_on_one_orbit_on_both_sides_and_meet(numbers):
    above, below = numbers["sgd_from_above_charge"], numbers["sgd_from_below_charge"]
    end = 0.5 * (above[:, -1].mean() + below[:, -1].mean())
    assert below[0, 0] < end < above[0, 0]
    assert abs(above[:, -1].mean() - below[:, -1].mean()) < 0.05 * (above[0, 0] - below[0, 0])


@pytest.mark.parametrize("run", ["SGD from above", "SGD from below", "SDE from above", "SDE from below"])
def test_the_balance_is_the_law_of_its_last_quarter(numbers, run):
    # (1 - γη)·2γ<C> - σ²ρ<Tr[ΣA]> - (η/2)<∇LᵀA∇L> + ΔC/2Δt is half the remainder of the law per time.
    name = run.lower().replace(" ", "_")
    t = numbers[f"{name}_t"]
    first = int(np.searchsorted(t, 0.75 * t[-1] - 1e-9))
    assert t[first] == pytest.approx(0.75 * t[-1])

    def rate(part):
        change = numbers[f"{name}_{part}"][:, -1] - numbers[f"{name}_{part}"][:, first]
        return change.mean() / (2 * (t[-1] - t[first]))

    (row,) = np.flatnonzero(numbers["table_label"] == run)
    left = numbers["table_measured"][row] - numbers["table_predicted"][row]
    assert left == pytest.approx(rate("delta") - rate("predicted"), rel=1e-9, abs=1e-14)
    assert numbers["table_measured"][row] == pytest.approx(-rate("decay") / (1 - 0.1 * 0.02), rel=1e-12)


def test_one_seed_gives_the_same_numbers_to_the_bit(data, tmp_path, capsys):
    found = []
    for folder, seed in (("a", "3"), ("b", "3"), ("c", "4")):
        words = ["demo", "--data", str(data), "--out", str(tmp_path / folder), "--paths", "3", "--steps", "80"]
        assert cli.main([*words, "--seed", seed]) == 0
        with np.load(tmp_path / folder / "numbers.npz") as file:
            found.append(dict(file))
    for name, value in found[0].items():
        np.testing.assert_array_equal(value, found[1][name], err_msg=name)
    assert not np.array_equal(found[0]["sgd_theta"], found[2]["sgd_theta"])


def test_the_digits_by_default(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["demo", "--paths", "3", "--steps", "80"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "handwritten digits: 1797 samples, linear layers 64 -> 10 -> 10" in text
    assert "η = 0.02, S = 1, γ = 0.02, σ² = η/2S = 0.01" in text
    assert sorted(p.name for p in (tmp_path / "sgdsde-demo").iterdir()) == list(FILES)


def test_every_option_reaches_the_problem(data, tmp_path, capsys):
    options = {
        "--seed": "5",
        "--paths": "4",
        "--steps": "88",
        "--learning-rate": "0.01",
        "--batch-size": "3",
        "--gamma": "0.3",
    }
    words = [word for pair in options.items() for word in pair]
    assert cli.main(["demo", "--data", str(data), "--out", str(tmp_path), *words]) == 0
    with np.load(tmp_path / "numbers.npz") as file:
        assert {name: file[name.lstrip("-").replace("-", "_")].item() for name in options} == {
            name: float(value) for name, value in options.items()
        }
        assert file["sgd_charge"].shape[0] == 4 and file["sgd_t"][-1] == pytest.approx(0.11)
        assert file["sgd_from_above_t"][-1] == pytest.approx(0.88)
    assert "η = 0.01, S = 3, γ = 0.3, σ² = η/2S = 0.00166667" in " ".join(capsys.readouterr().out.split())


def test_no_decay_and_no_data_are_no_trouble(tmp_path, capsys):
    np.savez(tmp_path / "zero.npz", X=np.zeros((4, 2)), Y=np.zeros(4))
    words = [
        "demo",
        "--data",
        str(tmp_path / "zero.npz"),
        "--out",
        str(tmp_path / "out"),
        "--paths",
        "3",
        "--steps",
        "80",
    ]
    assert cli.main([*words, "--gamma", "0"]) == 0
    assert "nan" not in capsys.readouterr().out


BAD = {
    "--seed": ["-1", "x", "18446744073709551616"],
    "--paths": ["2", "1.5", "many"],
    "--steps": ["10", "1e3"],
    "--learning-rate": ["0", "-1", "nan", "inf", "fast", "30"],
    "--batch-size": ["0", "21"],
    "--gamma": ["-1", "nan", "40"],
}


@pytest.mark.parametrize("option, value", [(option, value) for option, values in BAD.items() for value in values])
def test_a_bad_value_is_one_line(option, value, data, tmp_path, capsys):
    assert cli.main(["demo", "--data", str(data), "--out", str(tmp_path / "out"), f"{option}={value}"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and err.startswith("sgdsde demo: ") and option in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("arrays, about", [
    ({"X": np.ones((3, 2))}, "which holds X"),
    ({"X": np.ones((3, 2)), "Y": np.ones(4)}, "number of rows"),
    ({"X": np.ones(3), "Y": np.ones(3)}, "X of --data"),
    ({"X": np.ones((3, 2)), "Y": np.array(["a", "b", "c"])}, "Y of --data"),
    ({"X": np.full((3, 2), np.nan), "Y": np.ones(3)}, "finite"),
    ({"X": np.ones((3, 0)), "Y": np.ones(3)}, "columns"),
    ({"X": np.array([{}]), "Y": np.ones(1)}, "of numbers"),
])  # fmt: skip
def test_bad_data_is_one_line(arrays, about, tmp_path, capsys):
    np.savez(tmp_path / "bad.npz", **arrays)
    assert cli.main(["demo", "--data", str(tmp_path / "bad.npz"), "--out", str(tmp_path / "out")]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and about in err


@pytest.mark.parametrize("content, code", [(b"junk", 2), (b"", 2), (None, 2)])
def test_what_is_no_file_of_arrays_is_one_line(content, code, tmp_path, capsys):
    path = tmp_path / "data.npz"
    if content is not None:
        path.write_bytes(content)
    assert cli.main(["demo", "--data", str(path), "--out", str(tmp_path / "out")]) == code
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "data.npz" in err


def test_a_single_array_and_a_file_for_a_folder(data, tmp_path, capsys):
    np.save(tmp_path / "one.npy", np.ones(3))
    assert cli.main(["demo", "--data", str(tmp_path / "one.npy")]) == 2
    assert "single array" in capsys.readouterr().err
    assert cli.main(["demo", "--data", str(data), "--out", str(data)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_paths_that_leave_the_finite_numbers_end_it_with_the_reason(data, tmp_path, capsys):
    words = [
        "demo",
        "--data",
        str(data),
        "--out",
        str(tmp_path),
        "--paths",
        "3",
        "--learning-rate",
        "4",
        "--steps",
        "800",
    ]
    assert cli.main(words) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("sgdsde demo: SGD: 3 of 3 paths left the finite numbers") and "--learning-rate" in last


def test_an_interrupted_run_ends_the_demo(data, tmp_path, capsys, monkeypatch):
    from sgdsde._errors import INTERRUPTED

    run = sg.SGD.run

    def interrupted(*args, **kwargs):
        solution = run(*args, **kwargs)
        solution.path_status[:] = INTERRUPTED
        return solution

    monkeypatch.setattr(sg.SGD, "run", interrupted)
    assert cli.main(["demo", "--data", str(data), "--out", str(tmp_path), "--paths", "3", "--steps", "80"]) == 130
    assert capsys.readouterr().err.splitlines()[-1] == "sgdsde demo: interrupted"


def test_a_terminal_without_greek_letters(data, tmp_path):
    command = [sys.executable, "-m", "sgdsde", "demo", "--data", str(data), "--out", str(tmp_path), "--paths", "3"]
    plain = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run([*command, "--steps", "80"], capture_output=True, check=False, env=plain)
    assert done.returncode == 0, done.stderr
    assert "η" in (tmp_path / "table.txt").read_text(encoding="utf-8")


# --- the mean of a scheme's single steps ------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 5, 30, 31, 40, 500, 12345])
def test_steps_that_are_looked_at_stand_for_all(n):
    from sgdsde.cli._demo_scheme import looked_at

    steps, weights = looked_at(n)
    assert weights.sum() == n and np.all(np.diff(steps) > 0) and steps[0] == 0 and steps[-1] < n
    last = np.cumsum(weights)
    assert np.all(steps < last) and np.all(steps >= last - weights)


def test_the_term_of_milstein_is_its_exact_mean():
    # Two samples: the noise is one normal number w, and one step moves C by a polynomial in w of low degree, so 12
    # nodes of Gauss and Hermite give its exact mean.
    from sgdsde.cli._demo_scheme import scheme_term

    h, n_paths = 0.05, 20_000
    problem = sg.SGD(
        sg.models.DeepLinear([2, 2, 1]), [[1.0, 0.5], [-0.5, 2.0]], [[1.0], [-2.0]], learning_rate=h, gamma=0.1
    )
    law = sg.ChargeLaw(sg.Charge(problem.model.symmetries()["B=I"]), problem)
    theta = problem.model.init(rng=4)
    common = {"method": "milstein-symmetric", "t_eval": "steps"}
    nodes, weights = np.polynomial.hermite_e.hermegauss(12)
    w = np.sqrt(h) * nodes[:, None, None] * np.array([1.0, -1.0]) / np.sqrt(2)
    ends = sg.solve(problem.sde(), (0, h), theta, n_paths=12, dW=w, rng=0, **common)
    exact = weights @ law.charge(ends.y[:, -1]) / weights.sum() - law.charge(theta)
    run = sg.solve(problem.sde(), (0, h), theta, n_paths=n_paths, rng=1, track=law, **common)
    formula = law.report(run, size=False).predicted
    term = scheme_term(problem, law.charge, run, formula, 7, None)
    assert term.shape == (n_paths, 2) and np.all(term[:, 0] == 0)
    error = term[:, 1].std(ddof=1) / np.sqrt(n_paths)
    assert abs(exact - formula[0, 1]) > 10 * error  # what would be missed without it
    # 5 standard errors, a false alarm of 6e-7 for a normal mean; the seed is fixed.
    assert abs(formula[0, 1] + term[:, 1].mean() - exact) < 5 * error


def test_files_that_are_not_there_name_their_option(data, tmp_path, capsys):
    taken = tmp_path / "taken"
    taken.write_text("")
    for words, about in (
        (["--data", str(tmp_path / "none.npz")], "--data must be an .npz file"),
        (["--data", str(data), "--out", str(taken)], "--out must be a folder"),
    ):
        assert cli.main(["demo", *words]) == 2
        said = capsys.readouterr().err.strip().splitlines()
        assert len(said) == 1 and about in said[0]
