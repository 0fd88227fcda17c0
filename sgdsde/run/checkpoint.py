"""Checkpoints: a run that was killed goes on from its last one, to the same bits.

The file is an uncompressed `.npz` (arrays and one JSON text: nothing in it is executed), written beside its name and
moved into place, so that there is always one whole file. It names what was being run; another run refuses it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.equation._equation import Equation, Kernels
from sgdsde.equation.compile import unwrap
from sgdsde.equation.fingerprint import fingerprint
from sgdsde.equation.packing import pack
from sgdsde.random.stream import RNG_VERSION
from sgdsde.run.collect import Collector
from sgdsde.run.job import Block, Job
from sgdsde.run.paths import Paths

__all__ = ["Checkpoint", "settings_of"]

VERSION = 2
_ARRAYS = ("path", "x", "acc", "status", "first_bad", "saved", "noise_in", "noise_out")


class Checkpoint:
    """One checkpoint file of one run, written every `every` seconds and at the end."""

    def __init__(self, path: Any, every: Any) -> None:
        try:
            self.path = Path(path)
        except TypeError:
            raise ArgumentError(f"checkpoint must be the path of a file, got {path!r}") from None
        if not self.path.parent.is_dir() or self.path.is_dir():
            raise ArgumentError(f"checkpoint must name a file in a folder that exists, got {str(path)!r}")
        try:  # now, and not when the work is done
            beside = self.path.with_name(self.path.name + ".part")
            beside.write_bytes(b"")
            beside.unlink()
        except OSError as error:
            raise ArgumentError(f"checkpoint must be a file that can be written, got {str(path)!r} ({error})") from None
        self.every = _check.positive("checkpoint_every", every)
        self.written = time.monotonic()
        self.collector: Collector | None = None
        self.settings: dict[str, Any] = {}
        self.arrays, self.header = self._read()

    @property
    def block_size(self) -> int | None:
        """Of the run that is in the file, if there is one."""
        return self.header["settings"].get("block_size") if self.header else None

    @property
    def seed(self) -> int | None:
        """Of the run that is in the file, if there is one."""
        return self.header["settings"].get("seed") if self.header else None

    def _read(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        if not self.path.exists():
            return {}, {}
        try:
            with open(self.path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            header = json.loads(str(arrays.pop("header")))
            return arrays, {"settings": dict(header["settings"]), "steps": dict(header["steps"])}
        except Exception as error:
            raise ArgumentError(
                f"checkpoint {str(self.path)!r} is not a checkpoint of sgdsde, or it is damaged "
                f"({type(error).__name__}: {error}); delete the file or give another name"
            ) from error

    def due(self) -> bool:
        return time.monotonic() - self.written >= self.every

    def save(self, under_way: dict[int, Block]) -> None:
        assert self.collector is not None
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

    def load(self, collector: Collector, settings: dict[str, Any]) -> dict[int, Block]:
        """Fill the collector from the file; returns the blocks that were under way. Nothing happens without a file."""
        self.collector = collector
        self.settings = json.loads(json.dumps({"version": VERSION, "rng_version": RNG_VERSION, **settings}))
        if not self.header:
            return {}
        there = self.header["settings"]
        for name, value in self.settings.items():
            if there.get(name) != value:
                raise ArgumentError(
                    f"checkpoint {str(self.path)!r} belongs to another run: {name} was {there.get(name)!r}, "
                    f"now it is {value!r}; delete the file or give another name"
                )
        arrays, self.arrays = self.arrays, {}
        collector.load({name[5:]: value for name, value in arrays.items() if name.startswith("done-")})
        return {
            int(index): Block(int(index), *[arrays[f"block-{index}-{name}"] for name in _ARRAYS], k=k)
            for index, k in self.header["steps"].items()
        }


def settings_of(
    job: Job, paths: Paths, states: np.ndarray, given: np.ndarray | None, keep: str, size: int
) -> dict[str, Any]:
    """What has to be equal for a run to go on from a file: names as a person knows them, long things as digests."""
    program, grid, equation = job.program(), job.grid, job.equation
    kernels = equation.kernels(correction="correction" in job.resolve().needs_for(job.noise, equation.calculus))
    starts = states[:1] if states.strides[0] == 0 else states
    return {
        "equation": re.sub(r"0x[0-9a-f]+", "0x", repr(equation)),
        "method": job.resolve().name,
        "noise": job.noise,
        "seed": job.key,
        "n_paths": paths.n,
        "path_index": "all" if paths.numbers is None else _digest(paths.numbers),
        "t_span": [grid.t0, grid.t1],
        "dt": _digest(grid.lengths) if grid.lengths.size else grid.h,
        "t_eval": _digest(job.saves.times),
        "keep": keep,
        "observe": dict(program.observed),
        "track": dict(program.tracked),
        "track_every": job.track_every,
        "save_noise": job.save_noise,
        "block_size": size,
        "y0": _digest(starts),
        "dW": None if given is None else _digest(given),
        "brownian": repr(job.brownian),
        "project": None if job.project is None else type(job.project).__name__,
        "step_size": None if job.step_size is None else type(job.step_size).__name__,
        "numbers": _digest(*numbers_of(equation, kernels)),
        "watched": _digest(*(array for w in program.watchers if w.owner is None for array in (w.p, w.data))),
        "functions": _digest(*map(code_digest, [*functions_of(equation), *job.observe.values(), *_shaping(job)])),
    }


def _shaping(job: Job) -> list[Any]:
    return [thing for thing in (job.project, job.step_size) if thing is not None]


def numbers_of(equation: Equation, kernels: Kernels) -> tuple[np.ndarray, ...]:
    """The numbers that the kernels read, or what the equation says; a number of this process alone is none of them."""
    if hasattr(equation, "numbers"):
        return tuple(equation.numbers())
    if hasattr(equation, "sde"):
        return pack(getattr(equation, "args", ()))
    in_python = kernels.p.size == 1 and kernels.data.size == 0
    return () if in_python else (kernels.p, kernels.data)


def functions_of(equation: Equation) -> list[Any]:
    """The functions that a person wrote for an equation."""
    sde = getattr(equation, "sde", None)
    names = ("drift", "diffusion", "derivative")
    return [getattr(sde, name) for name in names if getattr(sde, name, None) is not None]


def code_digest(function: Any) -> bytes:
    """What a function computes as bytes that are the same in another process."""
    function = unwrap(function).function
    if not isinstance(function, (types.FunctionType, Dispatcher)):
        return _held(function, 8).encode()
    return _stable(fingerprint(function)).encode()


def _held(thing: Any, depth: int) -> str:
    """What an object holds, as text that is the same in another process: numbers and arrays some levels down."""
    if isinstance(thing, np.ndarray):
        return _digest(thing)
    if isinstance(thing, (str, bytes, int, float, bool, type(None), np.generic)):
        return repr(thing)
    name = type(thing).__qualname__
    if depth == 0:
        return name
    if isinstance(thing, Mapping):
        return f"{{{','.join(f'{key}:{_held(thing[key], depth - 1)}' for key in thing)}}}"
    if isinstance(thing, (list, tuple)):
        return f"[{','.join(_held(one, depth - 1) for one in thing)}]"
    if isinstance(thing, (types.FunctionType, Dispatcher)):
        return code_digest(thing).decode()
    held = getattr(thing, "__dict__", {})
    return f"{name}({','.join(f'{key}={_held(held[key], depth - 1)}' for key in sorted(held) if key[:1] != '_')})"


def _stable(key: Any) -> str:
    """A fingerprint as text; what it knows by identity alone counts by its type."""
    if isinstance(key, (tuple, frozenset)):
        return f"({','.join(map(_stable, key))})"
    return repr(key) if isinstance(key, (str, bytes, int, float, bool, type(None))) else type(key).__name__


def _digest(*parts: Any) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part if isinstance(part, bytes) else np.ascontiguousarray(part).tobytes())
        digest.update(b"|")
    return digest.hexdigest()[:16]
