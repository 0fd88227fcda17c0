"""Arguments of solve: which paths, where they start, and one clear sentence for what cannot be used."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._errors import TooLargeError

START = [0.3, -0.2]
RUN = dict(dt=0.1, rng=3)


@pytest.fixture(scope="module")
def ensemble(eq):
    return sg.solve(eq.mixed, (0, 1), START, n_paths=60, t_eval=4, save_noise=True, **RUN)


@pytest.mark.parametrize("index", [7, np.int64(7), [7], (50, 3, 7), range(10, 60, 7), np.array([5, 1]), np.arange(60)])
@pytest.mark.parametrize("n_paths", [60, None])
def test_some_paths_of_an_ensemble_alone(eq, ensemble, index, n_paths):
    """S7."""
    sol = sg.solve(eq.mixed, (0, 1), START, n_paths=n_paths, path_index=index, t_eval=4, save_noise=True, **RUN)
    rows = np.atleast_1d(index)
    single = n_paths is None and np.ndim(index) == 0
    assert sol.y.shape == ((4, 2) if single else (rows.size, 4, 2)) and sol.path_index.tolist() == rows.tolist()
    assert eq.same(sol.y.reshape(-1, 4, 2), ensemble.y[rows]) and eq.same(sol.dW.reshape(-1, 10, 3), ensemble.dW[rows])


def test_paths_far_out_have_noise_of_their_own(eq):
    far = [0, 1, 2**32, 2**32 + 1, 2**56 - 1]
    sol = sg.solve(eq.wiener, (0, 1), [0.0], path_index=far, **RUN)
    assert len(set(sol.y[:, -1, 0])) == 5 and sol.y[0] == pytest.approx(sg.solve(eq.wiener, (0, 1), [0.0], **RUN).y)


@pytest.mark.parametrize(
    ("index", "match"),
    [
        (-1, "path_index must be between 0 and 59, got -1"),
        (60, "path_index must be between 0 and 59, got 60"),
        ([0, 60], r"path_index must hold 0 <= path_index <= 59 \(n_paths = 60\), got 0 .. 60"),
        ([1, 1], "path_index must name different paths"),
        ([], "path_index must be an integer or a sequence of integers"),
        ([0.5], "path_index must be an integer or a sequence of integers"),
        ([True, False], "path_index must be an integer or a sequence of integers"),
        ("all", "path_index must be an integer, got 'all'"),
        (2.0, "path_index must be an integer, got 2.0"),
    ],
)
def test_paths_that_are_not_there(eq, index, match):
    with pytest.raises(sg.ArgumentError, match=match):
        sg.solve(eq.mixed, (0, 1), START, n_paths=60, path_index=index, **RUN)


def test_more_numbers_of_paths_than_fit_are_refused(eq):
    with pytest.raises(TooLargeError, match="running so many paths takes"):
        sg.solve(eq.mixed, (0, 1), START, path_index=range(10**13), **RUN)


def test_one_start_for_each_path(eq, ensemble):
    """H8: the state of one path is (d,); starts are rows."""
    y0 = np.random.default_rng(0).normal(size=(60, 2))
    run = {**RUN, "t_eval": 4, "n_paths": 60}
    sol = sg.solve(eq.mixed, (0, 1), y0, **run)
    assert eq.same(sol.y[:, 0], y0) and np.array_equal(sol.y0, y0)
    for path in (0, 59):
        assert eq.same(sol.y[path], sg.solve(eq.mixed, (0, 1), y0[path], path_index=path, t_eval=4, **RUN).y)
    part = sg.solve(eq.mixed, (0, 1), y0, path_index=[9, 4], **run)
    assert eq.same(part.y, sol.y[[9, 4]])
    shuffled = np.random.default_rng(1).permutation(60)  # as many as there are paths, in another order
    assert eq.same(sg.solve(eq.mixed, (0, 1), y0, path_index=shuffled, **run).y, sol.y[shuffled])
    rows = sg.solve(eq.mixed, (0, 1), y0[[9, 4]], path_index=[9, 4], t_eval=4, **RUN)
    assert eq.same(rows.y, sol.y[[9, 4]])
    tiled = sg.solve(eq.mixed, (0, 1), np.tile(START, (60, 1)), **run)
    assert eq.same(tiled.y, ensemble.y)


@pytest.mark.parametrize(
    ("y0", "n_paths", "match"),
    [
        ([1.0], 3, "y0 must have shape"),
        ([1.0, 2.0, 3.0], 3, "y0 must have shape"),
        (np.zeros((3, 2)), None, r"y0 must have shape \(2,\), got \(3, 2\); with n_paths=3 each row is the start"),
        (np.zeros((3, 2)), 4, r"y0 must have shape \(2,\) or \(n_paths, d\) = \(4, 2\), got \(3, 2\)"),
        (np.zeros((2, 3)), 2, "y0 must have shape"),
        (np.zeros((1, 1, 2)), 1, "y0 must have shape"),
        (1.0, None, "y0 must have shape"),
        ([1.0, np.nan], None, "y0 must be finite, got nan at index"),
        ([1.0, 1j], None, "y0 must hold real numbers"),
        ("ab", None, "y0 must hold real numbers"),
        ([[1.0], [2.0, 3.0]], None, "y0 must be a rectangular array"),
        (np.zeros((0, 2)), None, "y0 must have shape"),
    ],
)
def test_starts_of_the_wrong_shape(eq, y0, n_paths, match):
    """H5."""
    with pytest.raises(sg.ArgumentError, match=match):
        sg.solve(eq.mixed, (0, 1), y0, n_paths=n_paths, **RUN)


def test_a_matrix_is_not_a_state(eq):
    """H5: y0 of shape (2, 2) for an equation with 4 components is refused with what to do."""
    sde = sg.SDE(lambda t, y: -y, lambda t, y: np.ones(4), dim=4, noise="scalar")
    with pytest.raises(sg.ShapeError, match=r"y0 must have shape \(4,\), got \(2, 2\).*flatten a matrix \(C order\)"):
        sg.solve(sde, (0, 1), np.eye(2), dt=0.1)
    assert sg.solve(sde, (0, 1), np.eye(2).ravel(), dt=0.1, rng=0).y.shape == (2, 4)


def test_numbers_of_all_types_are_numbers(eq):
    plain = sg.solve(eq.gbm, (0, 1), [1.0], dt=0.25, rng=3, n_paths=4)
    for y0, dt, span, rng, n in (
        (1, 0.25, (0, 1), np.uint64(3), np.int32(4)),
        (np.float32(1), np.float32(0.25), [0.0, 1.0], 3, 4),
        ((1,), np.array(0.25), np.array([0, 1]), 3, 4),
        (np.ones((4, 1), dtype=bool), 0.25, (False, True), 3, 4),
    ):
        assert eq.same(sg.solve(eq.gbm, span, y0, dt=dt, rng=rng, n_paths=n).y, plain.y)


def test_rng_of_all_kinds(eq):
    def run(rng):
        return sg.solve(eq.wiener, (0, 1), [0.0], dt=0.5, rng=rng)

    generator = np.random.default_rng(5)
    first, second = run(generator), run(generator)
    assert first.seed != second.seed and eq.same(first.y, run(np.random.default_rng(5)).y)
    assert eq.same(first.y, run(first.seed).y)
    assert eq.same(run(np.random.SeedSequence(9)).y, run(np.random.SeedSequence(9)).y)
    assert run(None).seed != run(None).seed
    assert run(2**64 - 1).seed == 2**64 - 1
    for bad in (-1, 2**64, 1.5, True, "1", np.random, np.random.RandomState(1)):
        with pytest.raises(sg.ArgumentError, match="rng must be"):
            run(bad)


def test_an_argument_error_uses_up_no_random_numbers(eq):
    generator = np.random.default_rng(5)
    for bad in ({"t_eval": [2.0]}, {"y0": [1.0, 2.0]}, {"keep": "some"}, {"threads": 0}, {"block_size": 3}):
        with pytest.raises(sg.ArgumentError):
            sg.solve(eq.wiener, (0, 1), bad.pop("y0", [0.0]), dt=0.5, rng=generator, **bad)
    assert generator.integers(100) == np.random.default_rng(5).integers(100)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"dt": None}, "dt must be given"),
        ({"dt": 0}, "dt must be positive"),
        ({"dt": -0.1}, "dt must be positive"),
        ({"dt": "0.1"}, "dt must be a finite real number"),
        ({"dt": np.nan}, "dt must be a finite real number"),
        ({"dt": 10**400}, "dt must be a finite real number"),
        ({"dt": 1e-18}, "dt must allow at most"),
        ({"n_paths": 0}, "n_paths must be"),
        ({"n_paths": 2.0}, "n_paths must be an integer, got 2.0"),
        ({"n_paths": True}, "n_paths must be an integer, got True"),
        ({"keep": "none"}, "keep must be one of 'all', 'final', 'stats', got 'none'"),
        ({"threads": 0}, "threads must be at least 1"),
        ({"block_size": 12}, "block_size must be a power of two, got 12"),
        ({"block_size": 512}, "block_size must be between 1 and 256"),
        ({"chunk_steps": 0}, "chunk_steps must be"),
        ({"save_noise": 1}, "save_noise must be True or False"),
        ({"progress": 3}, "progress must be True, False or a function"),
        ({"args": 3}, "args must be a tuple"),
        ({"args": "ab"}, "args must be a tuple"),
        ({"method": "rk4"}, "method"),
        ({"method": "heun"}, "heun"),
        ({"method": "sra1"}, "takes additive noise, this equation has general noise"),
    ],
)
def test_arguments_that_cannot_be_used(eq, arguments, match):
    with pytest.raises(sg.ArgumentError, match=match):
        sg.solve(eq.mixed, (0, 1), START, **{"dt": 0.1, "rng": 0, **arguments})


def test_backward_times_and_other_problems_are_refused(eq):
    """M16."""
    with pytest.raises(sg.ArgumentError, match=r"t_span must go forward in time, got \(1, 0\)"):
        sg.solve(eq.gbm, (1, 0), [1.0], dt=0.1)
    with pytest.raises(sg.ArgumentError, match="sde must be an SDE or"):
        sg.solve(lambda t, y: y, (0, 1), [1.0], dt=0.1)


def test_more_random_numbers_than_there_are(eq):
    """Counters of 64 bits: a run whose numbers would overlap is refused, not wrapped around."""
    with pytest.raises(
        sg.ArgumentError, match="dt must allow at most .* steps with 3 random numbers each and times of"
    ):
        sg.solve(eq.mixed, (0, 1), START, dt=2.0**-42, t_eval=[0.5 + 2.0**-43], rng=0)


def test_args_replace_those_of_the_equation(eq):
    other = sg.solve(eq.mixed.replace(args=(1.0, 2.0)), (0, 1), START, **RUN)
    assert eq.same(sg.solve(eq.mixed, (0, 1), START, args=(1.0, 2.0), **RUN).y, other.y)
    assert not eq.same(sg.solve(eq.mixed, (0, 1), START, **RUN).y, other.y)


def test_noise_that_cannot_be_used(eq):
    dW = np.full((10, 1), 0.1)
    dW[3, 0] = np.nan
    with pytest.raises(sg.ArgumentError, match="dW must be finite"):
        sg.solve(eq.wiener, (0, 1), [0.0], dt=0.1, dW=dW)
    with pytest.raises(sg.ArgumentError, match="dW must"):
        sg.solve(eq.wiener, (0, 1), [0.0], dt=0.1, dW=np.ma.masked_invalid(dW))
    with pytest.raises(sg.ShapeError, match="dW must be a rectangular array"):
        sg.solve(eq.wiener, (0, 1), [0.0], dt=0.1, dW=[[0.1], [0.1, 0.2]])


def test_a_class_is_not_an_equation():
    with pytest.raises(sg.ArgumentError, match="sde must be an SDE or the .sde"):
        sg.solve(sg.SDE, (0, 1), [0.0], dt=0.1)


def test_what_would_fail_at_the_end_fails_at_the_start(eq, tmp_path):
    steps = []
    with pytest.raises(TypeError):
        sg.solve(eq.wiener, (0, 1), [0.0], progress=lambda: steps.append(1), **RUN)
    assert not steps
    (tmp_path / "file.part").mkdir()  # where it would be written first
    with pytest.raises(sg.ArgumentError, match="checkpoint must be a file that can be written"):
        sg.solve(eq.wiener, (0, 1), [0.0], checkpoint=tmp_path / "file", **RUN)


def test_solutions_compare_by_identity(eq):
    one, other = (sg.solve(eq.wiener, (0, 1), [0.0], **RUN) for _ in range(2))
    assert one == one and one != other and len({one, other}) == 2
    with pytest.raises(TypeError):
        one[0]
