"""Runs claims in processes side by side, and keeps what they gave so that it need not be computed again."""

from __future__ import annotations

import ast
import hashlib
import importlib
import json
import multiprocessing
import os
import pkgutil
import platform
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import sgdsde
import validation
from validation.claim import Check, Claim

LIBRARIES = ("numpy", "scipy", "numba")


@dataclass(frozen=True)
class Task:
    """One claim at one size with one seed."""

    module: str
    name: str
    size: str
    seed: int
    digest: str

    def file(self, out: Path) -> Path:
        """Where its outcome is kept."""
        return out / "results" / f"{self.name}-{self.size}-seed{self.seed}.json"


def claims(package: ModuleType = validation) -> dict[str, str]:
    """All claims of a folder, by name, with the module of each; files that begin with `_` are not claims."""
    found = {}
    for page in pkgutil.iter_modules(package.__path__):
        if not page.name.startswith("_"):
            module = f"{package.__name__}.{page.name}"
            claim = getattr(importlib.import_module(module), "CLAIM", None)
            if claim is not None:
                found[claim.name] = module
    return found


def load(module: str) -> Claim:
    return importlib.import_module(module).CLAIM


# --- what a result depends on -----------------------------------------------------------------------------------------


def digest(module: str, settings: Any) -> str:
    """Of the settings, the claim, what it imports of its folder, how figures are drawn, package and libraries."""
    made = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
    made.update(" ".join([platform.python_version(), *_versions()]).encode())
    figures = Path(__file__).with_name("_figures.py")
    for path in [*_sources(module), figures, *sorted(Path(sgdsde.__file__).parent.rglob("*.py"))]:
        made.update(path.name.encode() + path.read_bytes())
    return made.hexdigest()[:12]


def _versions() -> list[str]:
    return [f"{name} {importlib.import_module(name).__version__}" for name in LIBRARIES]


def _sources(module: str) -> list[Path]:
    """The file of a claim and those of its own folder that it imports, and they import."""
    folder, found, to_read = module.rpartition(".")[0], {}, [module]
    while to_read:
        name = to_read.pop()
        path = importlib.import_module(name).__file__
        if name in found or path is None:
            continue
        found[name] = Path(path)
        for node in ast.walk(ast.parse(found[name].read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            to_read += [n for n in names if n.startswith((f"{folder}.", "validation.")) and _is_module(n)]
    return [found[name] for name in sorted(found)]


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


# --- one task ---------------------------------------------------------------------------------------------------------


def run_task(task: Task) -> dict[str, Any]:
    """Checks, figures and time of a task as plain numbers and text; what it raises is a result too."""
    from validation._figures import drawings

    claim, begin, processor = load(task.module), time.perf_counter(), time.process_time()
    settings = getattr(claim, task.size)
    outcome: dict[str, Any] = {
        **{"claim": task.name, "size": task.size, "seed": task.seed, "digest": task.digest},
        **{"settings": json.loads(json.dumps(settings, default=float)), "when": time.strftime("%Y-%m-%d %H:%M")},
        **{"checks": [], "figures": {}, "error": ""},
    }
    try:
        checks, data = claim.run(settings, task.seed)
        outcome["checks"] = [_plain(check) for check in checks]
        if not checks:
            raise ValueError(f"{task.name} checked nothing")
        outcome["figures"] = drawings(claim, data, f"{task.size} {task.seed}")
    except Exception:
        outcome["error"] = traceback.format_exc()
    outcome["seconds"] = time.perf_counter() - begin
    outcome["processor seconds"] = time.process_time() - processor
    return outcome


def _plain(check: Check) -> dict[str, Any]:
    return {key: value.item() if isinstance(value, np.generic) else value for key, value in vars(check).items()}


def checks_of(outcome: dict[str, Any]) -> list[Check]:
    return [Check(**values) for values in outcome["checks"]]


def is_good(outcome: dict[str, Any]) -> bool:
    """Every check and control as it must be, and nothing was raised."""
    return not outcome["error"] and all(check.good for check in checks_of(outcome))


# --- all of them ------------------------------------------------------------------------------------------------------


def plan(modules: dict[str, str], names: Sequence[str], size: str, seeds: Sequence[int]) -> list[Task]:
    """The tasks, seed by seed, so that a run that is cut short has looked at every claim."""
    digests = {name: digest(modules[name], getattr(load(modules[name]), size)) for name in names}
    return [Task(modules[name], name, size, seed, digests[name]) for seed in seeds for name in names]


def kept(task: Task, out: Path) -> dict[str, Any] | None:
    """The outcome of an earlier run of the same code with the same settings and seed, if it ran to its end."""
    try:
        outcome = json.loads(task.file(out).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return outcome if outcome.get("digest") == task.digest and not outcome.get("error") else None


def run_all(
    tasks: Sequence[Task], out: Path, jobs: int, *, fresh: bool = False, tell: Callable[[str], None] = print
) -> Iterator[tuple[Task, dict[str, Any], bool]]:
    """(task, outcome, whether it was kept from before), each as it is finished; what is finished is on disk."""
    (out / "results").mkdir(parents=True, exist_ok=True)
    left = []
    for task in tasks:
        outcome = None if fresh else kept(task, out)
        if outcome is None:
            left.append(task)
        else:
            yield task, outcome, True
    if jobs == 1 or len(left) < 2:
        for task in left:
            tell(f"{task.name}, seed {task.seed}: begins")
            yield task, _keep(task, out, run_task(task)), False
        return
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, _begin, (context.Value("i", 0), cores, jobs)) as pool:
        waiting = {pool.submit(run_task, task): task for task in left}
        tell(f"{len(left)} to run, {jobs} at a time")
        try:
            for done in as_completed(waiting):
                yield waiting[done], _keep(waiting[done], out, done.result()), False
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _begin(counter: Any, cores: list[int], jobs: int) -> None:
    """A worker takes its share of the cores, so that several claims do not count on the same ones."""
    with counter.get_lock():
        mine, counter.value = counter.value, counter.value + 1
    share = max(1, len(cores) // jobs)
    if cores:
        first = mine * share % len(cores)
        os.sched_setaffinity(0, cores[first : first + share])


def _keep(task: Task, out: Path, outcome: dict[str, Any]) -> dict[str, Any]:
    path = task.file(out)
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(outcome, indent=1), encoding="utf-8")
    unfinished.replace(path)
    return outcome
