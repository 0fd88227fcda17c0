"""Checkpoints: a run that was killed goes on from its last one, to the same bits.

The file is an uncompressed `.npz` (arrays and one JSON text: nothing in it is executed), written beside its name and
moved into place, so that there is always one whole file. It names what was being run; another run refuses it.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from sgdsde._errors import ArgumentError
from sgdsde.run.collect import Collector
from sgdsde.run.job import Block, Job

__all__ = ["Checkpoint"]

VERSION = 1
_ARRAYS = ("path", "x", "acc", "status", "first_bad", "saved", "noise_in", "noise_out")


class Checkpoint:
    """One checkpoint file of one run, written every `every` seconds and at the end."""

    def __init__(self, path: Any, job: Job, collector: Collector, settings: dict[str, Any], every: float) -> None:
        self.path = Path(path)
        if not self.path.parent.is_dir():
            raise ArgumentError(f"checkpoint must lie in a folder that exists, got {str(path)!r}")
        self.every = every
        self.collector = collector
        self.settings = {"version": VERSION, **settings, "numbers": _fingerprint(job)}
        self.written = time.monotonic()

    def due(self) -> bool:
        return time.monotonic() - self.written >= self.every

    def save(self, under_way: dict[int, Block]) -> None:
        arrays: dict[str, Any] = {f"done-{name}": value for name, value in self.collector.state().items()}
        for block in under_way.values():
            for name in _ARRAYS:
                arrays[f"block-{block.index}-{name}"] = getattr(block, name)
        steps = {str(block.index): block.k for block in under_way.values()}
        arrays["header"] = np.array(json.dumps({"settings": self.settings, "steps": steps}))
        beside = self.path.with_name(self.path.name + ".part")
        with open(beside, "wb") as file:
            np.savez(file, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, self.path)
        self.written = time.monotonic()

    def load(self) -> dict[int, Block]:
        """Fill the collector from the file; returns the blocks that were under way. Nothing happens without a file."""
        if not self.path.exists():
            return {}
        try:
            with np.load(self.path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            header = json.loads(str(arrays.pop("header")))
            settings, steps = header["settings"], header["steps"]
        except Exception as error:
            raise ArgumentError(f"checkpoint {str(self.path)!r} is not a checkpoint of sgdsde: {error}") from error
        for name, value in self.settings.items():
            if settings.get(name) != value:
                raise ArgumentError(
                    f"checkpoint {str(self.path)!r} belongs to another run: {name} was {settings.get(name)!r}, "
                    f"now it is {value!r}; delete the file or give another name"
                )
        done = {name[5:]: value for name, value in arrays.items() if name.startswith("done-")}
        self.collector.load(done)
        return {
            int(index): Block(index=int(index), k=k, **{name: arrays[f"block-{index}-{name}"] for name in _ARRAYS})
            for index, k in steps.items()
        }


def _fingerprint(job: Job) -> str:
    """A hash of the numbers of a run: arguments, data, grid and save times."""
    kernels = job.equation.kernels(correction="correction" in job.resolve().needs)
    digest = hashlib.sha256()
    grid = job.grid
    for part in (kernels.p, kernels.data, job.saves.times, np.array([grid.t0, grid.t1, grid.h, grid.n_steps])):
        digest.update(np.ascontiguousarray(part, dtype=np.float64).tobytes())
    return digest.hexdigest()[:16]
