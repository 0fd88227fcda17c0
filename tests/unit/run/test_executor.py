"""Who runs the blocks changes nothing: threads, processes, executors of others; what they raise reaches the caller."""

import importlib
import multiprocessing
import os
import sys
import threading
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import numba
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import sgdsde as sg
from sgdsde.run import executor, remote
from sgdsde.run.blas import one_blas_thread
from sgdsde.schemes import Scheme, get_scheme

MODULE = """
import os
import numpy as np
import sgdsde as sg

def drift(t, y, a): return (-a * y[0] + np.sin(t), y[0] - y[1])
def diffusion(t, y, a): return ((0.3, 0.1 * y[1], 0.2), (0.0, 0.5, y[0]))
def process(t, y, a): return float(os.getpid())
class Fails:
    def __call__(self, t, y, a):
        if t > 0.5: raise KeyError("in a worker")
        return (0.0, 0.0)
sde = sg.SDE(drift, diffusion, dim=2, args=(0.8,))
"""
RUN = dict(dt=0.1, n_paths=40, rng=3, t_eval=[0.05, 0.5, 1.0])
START = [1.0, -1.0]


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    """A module of a user's, importable here and in workers."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "a_users_module.py").write_text(MODULE)
    sys.path.insert(0, str(folder))
    yield importlib.import_module("a_users_module")
    sys.path.remove(str(folder))
    del sys.modules["a_users_module"]


@pytest.fixture(scope="module")
def pool(there):
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


class Immediate(Executor):
    """An executor of somebody else: submit does it."""

    def submit(self, function, /, *args, **kwargs):
        future = Future()
        try:
            future.set_result(function(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


def test_processes_give_the_bits_of_threads(eq, there, pool):
    run = {**RUN, "observe": {"sum": lambda t, y, a: y[0] + y[1]}, "save_noise": True}
    here = sg.solve(there.sde, (0, 1), START, **run)
    for size, chunk in ((8, None), (1, 7)):
        far = sg.solve(there.sde, (0, 1), START, executor=pool, block_size=size, chunk_steps=chunk, **run)
        assert eq.same(here.values, far.values) and eq.same(here.dW, far.dW)


@pytest.mark.filterwarnings("ignore:.*runs in Python:RuntimeWarning")
def test_the_work_is_done_elsewhere(there, pool):
    sol = sg.solve(there.sde, (0, 1), START, executor=pool, block_size=8, observe=there.process, **RUN)
    processes = set(sol.observed["process"].ravel())
    assert processes and os.getpid() not in processes


@pytest.mark.parametrize("kind", ["lambdas", "closures", "compiled"])
def test_functions_of_all_kinds_travel(eq, pool, kind):
    a, weights, method = 0.7, np.array([0.2, 0.4]), "euler-maruyama"

    def drift(t, y):
        return (-a * y[0] + weights[1], y[0] * weights[0])

    if kind == "lambdas":
        sde = sg.SDE(lambda t, y: (y[1], -y[0]), lambda t, y: (0.1, 0.2 * y[0]), dim=2, noise="scalar")
        method = "milstein-symmetric"
    else:
        f = numba.njit(drift) if kind == "compiled" else drift
        sde = sg.SDE(f, lambda t, y: (y[1], y[0]), dim=2, noise="scalar")
    if kind == "compiled":  # and with it a scheme that is in no registry
        euler = get_scheme("euler-maruyama")
        method = Scheme("mine", euler.step, euler.calculus, euler.strong, euler.weak, work=lambda d, m: (0, d))
    here = sg.solve(sde, (0, 1), START, method=method, **RUN)
    assert eq.same(here.y, sg.solve(sde, (0, 1), START, method=method, executor=pool, block_size=16, **RUN).y)


def test_executors_of_others(eq, there):
    here = sg.solve(there.sde, (0, 1), START, **RUN)
    with ThreadPoolExecutor(2) as threads:
        for other in (threads, Immediate()):
            assert eq.same(here.y, sg.solve(there.sde, (0, 1), START, executor=other, block_size=4, **RUN).y)
            assert eq.same(
                here.mean(),
                sg.solve(there.sde, (0, 1), START, executor=other, block_size=4, keep="stats", **RUN).mean(),
            )
    for bad in (2, "processes", threading, ThreadPoolExecutor):
        with pytest.raises(sg.ArgumentError, match="executor must be a concurrent.futures.Executor"):
            sg.solve(there.sde, (0, 1), START, executor=bad, **RUN)


def test_a_large_job_is_sent_only_to_workers_that_ask(eq, monkeypatch):
    table = np.random.default_rng(0).normal(size=20_000)
    sde = sg.SDE(lambda t, y, w: (w[0] - y[0],), lambda t, y, w: (0.1,), dim=1, noise="additive", args=(table,))
    sent = []

    class Watched(Immediate):
        def submit(self, function, name, payload, *rest):
            sent.append(0 if payload is None else len(payload))
            return super().submit(function, name, payload, *rest)

    here = sg.solve(sde, (0, 1), [1.0], **RUN)
    far = sg.solve(sde, (0, 1), [1.0], executor=Watched(), block_size=8, **RUN)
    assert eq.same(here.y, far.y)
    # The first blocks fly before the worker has the job; every one that missed is sent once more with it.
    assert sent[0] == 0 and sum(size > 0 for size in sent) <= 2 * os.cpu_count() and max(sent) > 160_000
    assert len(remote._jobs) <= remote.KEPT


@pytest.mark.filterwarnings("ignore:.*runs in Python:RuntimeWarning")
@pytest.mark.parametrize("where", ["here", "threads", "processes", "thread pool"])
def test_what_a_function_raises_reaches_the_caller(there, pool, where):
    sde = sg.SDE(there.Fails(), lambda t, y, a: (1.0, 1.0), dim=2, noise="additive", args=(1.0,))
    how = {"here": {"threads": 1}, "threads": {"threads": 2}, "processes": {"executor": pool}}.get(where, {})
    if where == "thread pool":
        how = {"executor": ThreadPoolExecutor(2)}
    with pytest.raises(KeyError, match="in a worker"):
        sg.solve(sde, (0, 1), START, block_size=8, **how, **RUN)
    assert sg.solve(there.sde, (0, 1), START, block_size=8, **how, **RUN).success  # and nothing is left behind


@pytest.mark.parametrize("threads", [1, 2])
def test_what_compiled_code_raises_reaches_the_caller(threads):
    def drift(t, y):
        if t > 0.5:
            raise ValueError("beyond one half")
        return (0.0,)

    sde = sg.SDE(drift, lambda t, y: (1.0,), dim=1, noise="additive")
    with pytest.raises(ValueError, match="beyond one half"):
        sg.solve(sde, (0, 1), [0.0], dt=0.1, n_paths=4, block_size=1, threads=threads, rng=0)


def test_runs_in_several_threads_at_once(eq, there):
    here = [sg.solve(there.sde, (0, 1), START, **{**RUN, "rng": seed}).y for seed in range(6)]
    with ThreadPoolExecutor(6) as threads:
        runs = [threads.submit(sg.solve, there.sde, (0, 1), START, **{**RUN, "rng": seed}) for seed in range(6)]
        assert all(eq.same(y, run.result().y) for y, run in zip(here, runs))


@pytest.mark.filterwarnings("ignore:.*runs in Python:RuntimeWarning")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_run_inside_a_run(eq, threads):
    inner = sg.solve(eq.gbm, (0, 1), [1.0], dt=0.01, rng=0).y[-1, 0]

    class Nested:
        def __call__(self, t, y):
            return sg.solve(eq.gbm, (0, 1), [1.0], dt=0.01, rng=0).y[-1, 0]

    run = dict(dt=0.1, n_paths=4, rng=0, t_eval="steps", threads=threads, block_size=2)
    sol = sg.solve(eq.pair, (0, 1), [0.0, 1.0], observe=Nested(), **run)
    assert np.all(sol.observed["Nested"] == inner)
    assert eq.same(sol.y, sg.solve(eq.pair, (0, 1), [0.0, 1.0], **run).y)  # the scratch of one is not that of the other


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


@pytest.mark.filterwarnings("ignore:.*runs in Python:RuntimeWarning")
def test_blas_has_one_thread_during_a_run_and_as_many_as_before_after_it(eq):
    class Watch:
        def __call__(self, t, y):
            return max(blas_threads())

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        assert before and set(before) == {2}
        sol = sg.solve(eq.wiener, (0, 1), [0.0], dt=0.5, n_paths=8, rng=0, observe=Watch(), block_size=1)
        assert np.all(sol.observed["Watch"] == 1) and blas_threads() == before
        for other in (Immediate(), ThreadPoolExecutor(1)):
            far = sg.solve(eq.wiener, (0, 1), [0.0], dt=0.5, n_paths=8, rng=0, observe=Watch(), executor=other)
            assert np.all(far.observed["Watch"] == 1) and blas_threads() == before
        with pytest.raises(ZeroDivisionError), one_blas_thread(), one_blas_thread():
            1 / 0  # noqa: B018
        assert blas_threads() == before


def test_a_pool_that_breaks_says_so(there):
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        with pytest.raises(BrokenProcessPool):
            pool.submit(os._exit, 1).result()
        with pytest.raises(BrokenProcessPool):
            sg.solve(there.sde, (0, 1), START, executor=pool, **RUN)


def test_no_more_cores_than_a_container_grants(monkeypatch):
    executor._granted_cores.cache_clear()
    monkeypatch.setattr(executor.Path, "read_text", lambda path: "150000 100000\n")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(64), raising=False)
    try:
        assert executor.available_cores() == 2
    finally:
        executor._granted_cores.cache_clear()
