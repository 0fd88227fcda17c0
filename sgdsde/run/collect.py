"""What is kept of a run: every path, the end of every path, or moments over paths."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde._errors import INTERRUPTED
from sgdsde.run.job import Block, Job
from sgdsde.run.memory import refuse_more_than_half
from sgdsde.run.paths import PER_PATH
from sgdsde.run.statistics import Moments, Tree

__all__ = ["Collector", "check_memory"]


class Collector:
    """Takes finished blocks, in any order, and gives the arrays of the solution."""

    def __init__(self, job: Job, keep: str, n_paths: int, block_size: int) -> None:
        program = job.program()
        self.block_size = block_size
        self.rows = job.equation.dim + program.n_observed + program.n_tracked
        n_saves = job.saves.times.size
        self.path_status = np.full(n_paths, INTERRUPTED, np.int8)
        self.first_bad = np.zeros(n_paths, np.int64)
        self.events = np.zeros(n_paths, np.int64)
        self.done = np.zeros(-(-n_paths // block_size), bool)
        self.tree = Tree() if keep == "stats" else None
        self.values = None if keep == "stats" else np.full((n_paths, n_saves, self.rows), np.nan)
        self.noise = np.zeros((n_paths, job.grid.n_steps, program.m)) if job.save_noise else None

    def add(self, block: Block, *, finished: bool = True) -> None:
        start = block.index * self.block_size
        part = slice(start, start + block.path.size)
        self.path_status[part] = block.status[: block.path.size]
        self.events[part] = block.status[block.path.size :]
        self.first_bad[part] = block.first_bad
        if self.tree is not None:
            self.tree.add(block.saved, block.index, self.block_size)
        if self.values is not None:
            self.values[part] = np.moveaxis(block.saved, -1, 0)
        if self.noise is not None:
            self.noise[part] = np.moveaxis(block.noise_out.reshape(*self.noise.shape[1:], -1), -1, 0)
        self.done[block.index] = finished

    def moments(self) -> Moments | None:
        return self.tree.result() if self.tree is not None else None

    def state(self) -> dict[str, np.ndarray]:
        """Arrays from which `load` makes the same collector again."""
        arrays: dict[str, np.ndarray] = {}
        arrays |= {"path_status": self.path_status, "first_bad": self.first_bad, "events": self.events}
        arrays["done"] = self.done
        if self.values is not None:
            arrays["values"] = self.values
        if self.noise is not None:
            arrays["noise"] = self.noise
        if self.tree is not None:
            for (level, index), node in self.tree.pending.items():
                arrays[f"node-{level}-{index}"] = node
        return arrays

    def load(self, arrays: dict[str, Any]) -> None:
        for name in ("path_status", "first_bad", "events", "done", "values", "noise"):
            if name in arrays:
                getattr(self, name)[...] = arrays[name]
        if self.tree is not None:
            for name, node in arrays.items():
                if name.startswith("node-"):
                    _, level, index = name.split("-")
                    self.tree.pending[int(level), int(index)] = node


def check_memory(job: Job, keep: str, n_paths: int, blocks_at_once: int) -> None:
    """Refuse to keep more than half of the free memory, before anything is allocated."""
    program, n_times = job.program(), job.saves.times.size
    rows = job.equation.dim + program.n_observed + program.n_tracked
    noise = job.grid.n_steps * program.m if job.save_noise else 0
    numbers = PER_PATH * n_paths + (n_times * rows + noise) * min(256 * blocks_at_once, n_paths)
    numbers += n_paths * noise
    if keep != "stats":
        numbers += n_paths * n_times * rows
    advice = []
    if keep == "all":
        advice.append('keep="stats" (means and variances over paths) or keep="final"')
    if n_times > 2 and keep != "final":
        advice.append("fewer times in t_eval")
    if job.save_noise:
        advice.append("save_noise=False (the seed reproduces the noise)")
    advice.append("fewer paths at once (path_index=range(...) runs a part of an ensemble)")
    what = f"keeping {n_paths} paths x {n_times} times x {rows} numbers{' and the noise' if job.save_noise else ''}"
    if keep == "stats":
        what = f"running {n_paths} paths with moments at {n_times} times x {rows} numbers"
    refuse_more_than_half(8.0 * numbers, what, advice)
