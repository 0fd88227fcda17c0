"""Ctrl-C returns what is done, and says so; a checkpoint goes on from there."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._errors import INTERRUPTED, OK
from sgdsde.run.interrupt import Interrupt

START = [0.3, -0.2]


@pytest.fixture(autouse=True)
def pythons_own_handler():
    """A process that was started in the background may have been told to ignore Ctrl-C; these tests need it."""
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, old)


def press_at(fraction):
    """A progress function that presses Ctrl-C once."""
    pressed = []

    def progress(done):
        if done > fraction and not pressed:
            pressed.append(done)
            signal.raise_signal(signal.SIGINT)

    return progress


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("keep", ["all", "stats"])
def test_what_is_done_comes_back_and_the_rest_later(eq, tmp_path, threads, keep):
    run = dict(dt=0.01, n_paths=40, rng=3, t_eval=11, block_size=8, chunk_steps=10, threads=threads, keep=keep)
    part = sg.solve(eq.mixed, (0, 1), START, checkpoint=tmp_path / "file", progress=press_at(0.4), **run)
    whole = sg.solve(eq.mixed, (0, 1), START, **run)
    assert not part.success and part.n_diverged == 0
    done = part.path_status == OK
    assert set(part.path_status) <= {OK, INTERRUPTED} and not done.all()
    assert f"{40 - done.sum()} of 40 paths interrupted before the end" in part.message and "interrupted" in repr(part)
    assert np.isnan(part.mean()[-1]).all() and np.isnan(part.t_stopped).all()
    assert part.count()[-1, 0] == done.sum() and part.count()[0, 0] >= done.sum()
    if keep == "all":
        reached = np.isfinite(part.y)
        assert np.array_equal(part.y[reached], whole.y[reached]) and eq.same(part.y[done], whole.y[done])
        assert 0.2 < reached.mean() < 0.9
    rest = sg.solve(eq.mixed, (0, 1), START, checkpoint=tmp_path / "file", **run)
    assert rest.success and eq.same(rest.mean(), whole.mean()) and eq.same(rest.var(), whole.var())
    assert keep == "stats" or eq.same(rest.y, whole.y)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_signal_in_the_middle_of_compiled_code(eq, threads):
    timers = []

    def start_the_clock(done):  # once the run is under way
        if not timers:
            timers.append(threading.Timer(0.15, os.kill, (os.getpid(), signal.SIGINT)))
            timers[0].start()

    handler = signal.getsignal(signal.SIGINT)
    begin = time.monotonic()
    sol = sg.solve(eq.mixed, (0, 1), START, dt=1e-11, rng=0, n_paths=3, threads=threads, progress=start_the_clock)
    assert 0.15 < time.monotonic() - begin < 30
    assert sol.path_status.tolist() == [INTERRUPTED] * 3 and eq.same(sol.y[:, 0], np.tile(START, (3, 1)))
    assert np.isnan(sol.y[:, 1]).all() and signal.getsignal(signal.SIGINT) is handler


def test_interrupted_processes_keep_what_they_had(eq, tmp_path):
    # An executor whose work dies of the same Ctrl-C, as workers of a terminal may.
    from concurrent.futures import Executor, Future

    class Dies(Executor):
        calls = 0

        def submit(self, function, /, *args):
            future = Future()
            Dies.calls += 1
            if Dies.calls > 20:
                signal.raise_signal(signal.SIGINT)
                future.set_exception(KeyboardInterrupt())
            else:
                future.set_result(function(*args))
            return future

    run = dict(dt=0.01, n_paths=40, rng=3, block_size=8, chunk_steps=10)
    part = sg.solve(eq.mixed, (0, 1), START, executor=Dies(), checkpoint=tmp_path / "file", **run)
    assert not part.success
    rest = sg.solve(eq.mixed, (0, 1), START, checkpoint=tmp_path / "file", **run)
    assert eq.same(rest.y, sg.solve(eq.mixed, (0, 1), START, **run).y)


def test_a_second_press_raises_as_usual():
    with pytest.raises(KeyboardInterrupt), Interrupt() as interrupt:
        signal.raise_signal(signal.SIGINT)
        assert interrupt.asked
        signal.raise_signal(signal.SIGINT)


def test_handlers_of_others_come_back_and_ignoring_is_respected(eq):
    old = signal.getsignal(signal.SIGINT)
    try:
        for handler in (signal.SIG_IGN, lambda *_: None):
            signal.signal(signal.SIGINT, handler)
            sg.solve(eq.gbm, (0, 1), [1.0], dt=0.5, rng=0)
            assert signal.getsignal(signal.SIGINT) is handler
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        assert sg.solve(eq.mixed, (0, 1), START, dt=0.01, n_paths=9, rng=0, progress=press_at(0.1)).success
    finally:
        signal.signal(signal.SIGINT, old)


def test_in_other_threads_signals_are_left_alone(eq):
    seen = []

    def run():
        before = signal.getsignal(signal.SIGINT)
        sol = sg.solve(eq.gbm, (0, 1), [1.0], dt=0.5, rng=0)
        seen.append((sol.success, signal.getsignal(signal.SIGINT) is before))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [(True, True)]
