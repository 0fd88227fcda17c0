"""What comes back: words, statistics by name, progress, and what is refused before memory runs out."""

import re
from itertools import pairwise

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._errors import TooLargeError
from sgdsde.random import RNG_VERSION
from sgdsde.run import memory
from sgdsde.run.progress import reporter


def test_it_describes_itself(eq):
    sol = sg.solve(
        eq.gbm, (0, 1), [1.0], dt=0.25, n_paths=3, rng=9, t_eval=3, observe={"square": lambda t, y, a: y[0] ** 2}
    )
    assert repr(sol).splitlines() == [
        "Solution of SDE(drift_one, noise_one, dim=1, noise='diagonal', calculus='ito', args=(1.0,))",
        "  method euler-maruyama, dt = 0.25, 4 steps to t = 1, seed 9",
        "  all 3 paths reached t = 1; y (3, 3, 1) at 3 times",
        "  observed square: 1 numbers",
    ]
    assert sol.success and sol.n_diverged == 0 and sol.message == "all 3 paths reached t = 1"
    assert sol.method == "euler-maruyama" and sol.dt == 0.25 and sol.n_steps == 4 and sol.seed == 9
    assert sol.calculus == "ito" and sol.problem is eq.gbm and sol.rng_version == RNG_VERSION
    assert sol.path_status.tolist() == [0, 0, 0] and np.isnan(sol.t_stopped).all()
    one = sg.solve(eq.gbm, (0, 1), [1.0], dt=0.25, rng=9)
    assert one.message == "reached t = 1" and "y (2, 1) at 2 times" in repr(one)
    stats = sg.solve(eq.gbm, (0, 1), [1.0], dt=0.25, rng=9, n_paths=4, keep="stats")
    assert "moments only at 2 times" in repr(stats)


def test_its_arrays_are_its_own(eq):
    y0 = np.array([1.0])
    sol = sg.solve(eq.gbm, (0, 1), y0, dt=0.25, rng=9, n_paths=4)
    y0[0] = 7.0
    assert sol.y[0, 0, 0] == 1.0 and np.all(sol.y0 == 1.0)
    again = sg.solve(eq.gbm, (0, 1), [1.0], dt=0.25, rng=9, n_paths=4)
    sol.y[:] = 0.0
    assert again.y.all()


@pytest.mark.parametrize("threads", [1, 2])
def test_progress_rises_from_zero_to_one(eq, threads):
    seen = []
    sg.solve(
        eq.mixed, (0, 1), [0.3, -0.2], dt=0.01, n_paths=40, rng=0, threads=threads,
        progress=seen.append, block_size=8, chunk_steps=10,
    )  # fmt: skip
    assert len(seen) == 51 and seen[0] == 0.0 and seen[-1] == 1.0 and seen.count(1.0) == 1
    assert all(a < b for a, b in pairwise(seen)) and all(isinstance(f, float) for f in seen)


def test_what_progress_raises_reaches_the_caller(eq):
    def progress(done):
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        sg.solve(eq.gbm, (0, 1), [1.0], dt=0.01, rng=0, progress=progress)


def test_a_line_of_progress(eq, capsys, monkeypatch):
    sg.solve(eq.gbm, (0, 1), [1.0], dt=0.01, rng=0, progress=True)
    line = capsys.readouterr().err
    assert re.fullmatch(r"euler-maruyama: █{30} 100 %  \d+\.\d s   \n", line)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    line = reporter(True, "x")
    line(0.5)
    line.break_off()
    assert re.fullmatch(r"\rx: █{15}·{15}  50 %  0\.0 s, 0 s left   \n", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (
            {"n_paths": 10**7, "t_eval": "steps"},
            'keep="stats".*or keep="final", or fewer times in t_eval, or fewer paths',
        ),
        (
            {"n_paths": 10**6, "keep": "final", "save_noise": True},
            r"and the noise takes.*save_noise=False.*fewer paths",
        ),
        ({"n_paths": 10**12, "keep": "stats"}, r"fewer paths at once \(path_index=range"),
        ({"n_paths": 2**56}, 'keep="stats"'),
    ],
)
def test_more_than_half_of_the_free_memory_is_refused_before_it_is_taken(eq, monkeypatch, arguments, advice):
    monkeypatch.setattr(memory, "free_memory", lambda: 2.0**30)
    with pytest.raises(TooLargeError, match=advice) as caught:
        sg.solve(eq.mixed, (0, 1), [0.3, -0.2], dt=0.01, rng=0, **arguments)
    assert re.search(r"takes [\d.e+]+ [GTPE]iB, more than half of the 1 GiB that are free; use ", str(caught.value))
    assert isinstance(caught.value, MemoryError)


def test_the_size_that_is_refused_is_the_size(eq, monkeypatch):
    # 2**20 paths x 2 times x 2 numbers = 32 MiB, and what goes with each path.
    monkeypatch.setattr(memory, "free_memory", lambda: 100 * 2.0**20)
    with pytest.raises(TooLargeError, match=r"keeping 1048576 paths x 2 times x 2 numbers takes 6[45]\.?\d* MiB"):
        sg.solve(eq.mixed, (0, 1), [0.3, -0.2], dt=0.5, rng=0, n_paths=2**20)
    assert sg.solve(eq.mixed, (0, 1), [0.3, -0.2], dt=0.5, rng=0, n_paths=2**14).success


def test_free_memory_is_a_number_of_bytes():
    assert 2.0**20 < memory.free_memory() < 2.0**50
