"""The one compiled loop: it advances a block of paths over a range of steps, for every scheme and every equation.

In: kernels, the block's state and accumulators, the range of steps [k0, k1), the times to save. Out: the same state
and accumulators further on, the saved rows, the status of each path. Nothing else is remembered, so a run may be cut
into blocks and ranges anywhere, and go on in another thread, another process or another day, with the same bits.

Steps are taken in windows of 64 or a few more. A window first runs without looking at single values; if at its end a
column is not finite (or a step reported a failure), the block goes back to the window's start and repeats it carefully:
after each step bad columns are stopped, put back to their last good state, and dated. Randomness is addressed, not
consumed, so the repetition sees the same numbers.
"""

from __future__ import annotations

import numpy as np
from numba import types

from sgdsde._abi import (
    AUX,
    BLOCK,
    BRIDGE,
    CORRECTION,
    DRIVING,
    INCREMENT,
    INTS,
    OBSERVE,
    PATHS,
    PROJECT,
    STEP,
    TRACK,
    VECTOR,
)
from sgdsde._address import function_at
from sgdsde._errors import DIVERGED, OK
from sgdsde._jit import inline, kernel
from sgdsde._views import matrix, rest, vector
from sgdsde.random.normal import fill_normals
from sgdsde.run.columns import column_finite, columns_finite, copy, fill, scale, turn
from sgdsde.run.stepping import adapted, adapted_size, projected

SLOTS = 4
"""Observers, and trackers, of one run."""
WINDOW = 64
FEW_NUMBERS = 256
"""Windows of a few paths are longer, so that this many numbers are drawn at once."""
NOISE_BUDGET = 16384
"""Doubles of noise drawn at once: a window is shortened so that its noise stays in the cache."""
RANK_STRIDE = 1 << 42
"""Save times within one step use bridge normals this far apart."""

CUBE = types.float64[:, :, ::1]
_ARRAYS = types.UniTuple(VECTOR, SLOTS)
_KERNELS = (
    types.int64[:, ::1],  # addresses (2·SLOTS + 7, 3) of what SIGNATURES lists
    VECTOR,  # p
    VECTOR,  # data
    _ARRAYS,  # p of each observer
    _ARRAYS,  # data of each observer
    INTS,  # observer row offsets (SLOTS + 1)
    _ARRAYS,  # p of each tracker
    _ARRAYS,  # data of each tracker
    INTS,  # tracker row offsets (SLOTS + 1)
    types.int64,  # track_every
    types.int64,  # 0, or how the state is projected (stepping.BY_KERNEL, BY_FUNCTION)
    VECTOR,  # p of the projection
    VECTOR,  # data of the projection
    types.boolean,  # whether steps follow the state
    VECTOR,  # p of the step size
    VECTOR,  # data of the step size
)
SIGNATURES = (STEP, INCREMENT, CORRECTION, AUX, *(OBSERVE,) * SLOTS, *(TRACK,) * SLOTS, PROJECT, OBSERVE, OBSERVE)
"""What the rows of the address table are; the last three: projection as a kernel, as a function, step size."""
PROJECTION = 4 + 2 * SLOTS

_step, _increment, _correction, _aux, _observer, _tracker = map(
    function_at, (STEP, INCREMENT, CORRECTION, AUX, OBSERVE, TRACK)
)
_GRID = (  # t0, h, length of the last step, n_steps; every length and time (n_steps), if they are not equal
    types.float64,
    types.float64,
    types.float64,
    types.int64,
    VECTOR,
    VECTOR,
)
_SAVES = (INTS, VECTOR, VECTOR, CUBE)  # step before each save, offset from it, time, rows (n_saves, d + watched, B)
_STATE = (BLOCK, BLOCK, INTS, INTS, PATHS, types.uint64)  # x, accumulators, status (2B), first bad step, paths, key


@inline
def _save(rows, x, acc, status, time, t, table, observer_p, observer_data, observer_rows, work):
    d, n = x.shape
    copy(rows, x)
    q = observer_rows[SLOTS]
    if q > 0:
        fill(t, time)
    for j in range(SLOTS):
        if observer_rows[j + 1] > observer_rows[j]:
            observe = _observer(table[4 + j, 0], table[4 + j, 1], table[4 + j, 2])
            observe(rows[d + observer_rows[j] : d + observer_rows[j + 1]], x, t, observer_p[j], observer_data[j], work)
    for i in range(acc.shape[0]):
        for b in range(n):
            rows[d + q + i, b] = acc[i, b]
    for b in range(n):
        if status[b] != OK or not column_finite(x, b):
            for i in range(rows.shape[0]):
                rows[i, b] = np.nan


@inline
def _window(
    table, p, data, observer_p, observer_data, observer_rows, tracker_p, tracker_data, tracker_rows, track_every,
    project, project_p, project_data, adaptive, size_p, size_data,
    t0, h_step, h_last, n_steps, lengths, times, save_step, save_offset, save_time, saved,
    x, acc, status, first_bad, path, key, x0, acc0, side, bridge, fresh, aux, t, h, t_save, end, moved, within,
    status0, status1, work, noise, aux_in, k_in, k0, k1, s, careful,
):  # fmt: skip
    """Steps k0 .. k1 - 1, driven by noise ((k1 - k0)·m, B), saving from save number s on; returns the next number."""
    step = _step(table[0, 0], table[0, 1], table[0, 2])
    increment = _increment(table[1, 0], table[1, 1], table[1, 2])
    correction = _correction(table[2, 0], table[2, 1], table[2, 2])
    fill_aux = _aux(table[3, 0], table[3, 1], table[3, 2])
    size = _observer(table[PROJECTION + 2, 0], table[PROJECTION + 2, 1], table[PROJECTION + 2, 2])
    n_columns = x.shape[1]
    m = bridge.shape[0]
    n_saves = save_step.shape[0]
    next_save = save_step[s] if s < n_saves else -1
    tracking = tracker_rows[SLOTS] > 0
    fill(h, h_step)
    for k in range(k0, k1):
        length = h_step
        if lengths.shape[0] > 0:
            length = lengths[k]
            fill(h, length)
            fill(t, times[k])
        else:
            if k == n_steps - 1:
                length = h_last
                fill(h, h_last)
            fill(t, t0 + k * h_step)
        dW = matrix(noise, (k - k0) * m * n_columns, m, n_columns)
        rank = 0
        at = 0.0
        while next_save == k:
            offset = save_offset[s]
            if offset == 0.0:
                _save(saved[s], x, acc, status, save_time[s], t_save, table,
                      observer_p, observer_data, observer_rows, work)  # fmt: skip
            else:
                # A Brownian bridge from (at, W) to (length, dW), then a step of its own to the save time; x stays.
                fill_normals(fresh, rank * RANK_STRIDE + k * m, path, BRIDGE, key)
                pull = (offset - at) / (length - at)
                spread = np.sqrt((offset - at) * (length - offset) / (length - at))
                for j in range(m):
                    for b in range(n_columns):
                        start = bridge[j, b] if rank > 0 else 0.0
                        bridge[j, b] = start + pull * (dW[j, b] - start) + spread * fresh[j, b]
                copy(side, x)
                fill(h, offset)
                for b in range(2 * n_columns):
                    status0[b] = status[b]
                at = offset
                rank += 1
                if aux.shape[0] > 0:
                    fill_aux(aux, bridge, h, path, rank * RANK_STRIDE + k, key, p, data, work)
                step(increment, correction, side, t, h, bridge, aux, status0, work, p, data)
                if project > 0:
                    projected(project, table, PROJECTION, side, x, t, h, end, moved, status0,
                              project_p, project_data, work)  # fmt: skip
                _save(saved[s], side, acc, status0, save_time[s], t_save, table,
                      observer_p, observer_data, observer_rows, work)  # fmt: skip
                fill(h, length)
            s += 1
            next_save = save_step[s] if s < n_saves else -1
        tracked = tracking and k % track_every == 0
        if careful or tracked or project > 0:
            copy(x0, x)
        if careful:
            for b in range(2 * n_columns):
                status0[b] = status[b]
        if aux.shape[0] > 0:
            if aux_in.shape[1] > 0:
                turn(aux, aux_in, (k - k_in) * aux.shape[0])
            else:
                fill_aux(aux, dW, h, path, k, key, p, data, work)
        if adaptive:
            adapted(
                step, increment, correction, size, project, table, PROJECTION,
                x, t, h, h_step, dW, aux, status, k, path, key,
                p, data, size_p, size_data, project_p, project_data, end, moved, status1, work, within,
            )  # fmt: skip
        else:
            step(increment, correction, x, t, h, dW, aux, status, work, p, data)
            if project > 0:
                projected(project, table, PROJECTION, x, x0, t, h, end, moved, status, project_p, project_data, work)
        if careful:
            for b in range(n_columns):
                if status0[b] != OK:
                    status[b] = status0[b]
                elif status[b] == OK and not column_finite(x, b):
                    status[b] = DIVERGED
                if status[b] != OK:
                    if status0[b] == OK:
                        first_bad[b] = k + 1
                    else:
                        status[n_columns + b] = status0[n_columns + b]
                    for i in range(x.shape[0]):
                        x[i, b] = x0[i, b]
        if tracked:
            if careful:
                copy(acc0, acc)
            for j in range(SLOTS):
                if tracker_rows[j + 1] > tracker_rows[j]:
                    row = 4 + SLOTS + j
                    track = _tracker(table[row, 0], table[row, 1], table[row, 2])
                    rows = acc[tracker_rows[j] : tracker_rows[j + 1]]
                    track(rows, x0, x, t, h, tracker_p[j], tracker_data[j], work)
            if careful:
                for b in range(n_columns):
                    if status[b] != OK:
                        for i in range(acc.shape[0]):
                            acc[i, b] = acc0[i, b]
    return s


@inline
def _window_steps(m, n):
    """Steps of a window: enough numbers for whole packs, few enough for the cache."""
    if m == 0:
        return WINDOW
    return max(1, min(max(WINDOW, FEW_NUMBERS // (m * n)), NOISE_BUDGET // (m * n)))


def scratch_size(d: int, q: int, m: int, n_aux: int, n: int) -> int:
    """Doubles that `advance` needs for n paths of d numbers with q accumulators, m noises and n_aux draws a step."""
    return n * (4 * d + 2 * q + (2 + _window_steps.py_func(m, n)) * m + n_aux + 4) + adapted_size.py_func(d, m, n)


@kernel(types.void(*_KERNELS, *_GRID, *_SAVES, *_STATE, *(BLOCK,) * 3, *(types.int64,) * 5, VECTOR, VECTOR))
def advance(
    table, p, data, observer_p, observer_data, observer_rows, tracker_p, tracker_data, tracker_rows, track_every,
    project, project_p, project_data, adaptive, size_p, size_data,
    t0, h_step, h_last, n_steps, lengths, times, save_step, save_offset, save_time, saved,
    x, acc, status, first_bad, path, key,
    noise_in, aux_in, noise_out, k_in, k0, k1, m, n_aux, work, scratch,
):  # fmt: skip
    """Take the block from step k0 to k1.

    `noise_in` (B, ·m) and `aux_in` (B, ·n_aux) drive it, if they have columns, from step number k_in on; `noise_out`
    (n_steps·m, B) keeps what did, if it has rows.
    """
    d, n = x.shape
    q = acc.shape[0]
    window = _window_steps(m, n)
    x0, side, start = matrix(scratch, 0, d, n), matrix(scratch, d * n, d, n), matrix(scratch, 2 * d * n, d, n)
    at = 3 * d * n
    acc0, acc_start = matrix(scratch, at, q, n), matrix(scratch, at + q * n, q, n)
    at += 2 * q * n
    bridge, fresh = matrix(scratch, at, m, n), matrix(scratch, at + m * n, m, n)
    at += 2 * m * n
    aux = matrix(scratch, at, n_aux, n)
    at += n_aux * n
    t, h, t_save = vector(scratch, at, n), vector(scratch, at + n, n), vector(scratch, at + 2 * n, n)
    end, moved = vector(scratch, at + 3 * n, n), matrix(scratch, at + 4 * n, d, n)
    at += (4 + d) * n
    noise = matrix(scratch, at, window * m, n)
    within = rest(scratch, at + window * m * n)
    status0, status1, events = np.empty(2 * n, np.int64), np.empty(2 * n, np.int64), np.empty(n, np.int64)
    s = np.searchsorted(save_step, k0)
    careful = False
    for b in range(n):
        careful = careful or status[b] != OK
    for k in range(k0, k1, window):
        k_end = min(k + window, k1)
        rows = noise[: (k_end - k) * m]
        if m > 0:
            if noise_in.shape[1] > 0:
                turn(rows, noise_in, (k - k_in) * m)
            else:
                fill_normals(rows, k * m, path, DRIVING, key)
                if lengths.shape[0] > 0:
                    for i in range(k, k_end):
                        scale(rows, (i - k) * m, (i - k + 1) * m, np.sqrt(lengths[i]))
                else:
                    full = m * (min(k_end, n_steps - 1) - k)  # rows of steps of full length
                    scale(rows, 0, full, np.sqrt(h_step))
                    scale(rows, full, rows.shape[0], np.sqrt(h_last))
            if noise_out.shape[0] > 0:
                noise_out[k * m : k_end * m] = rows
        if not careful:
            start[:] = x
            acc_start[:] = acc
            events[:] = status[n:]
        s_start = s
        trial = careful
        for _ in range(2):
            s = _window(
                table, p, data, observer_p, observer_data, observer_rows,
                tracker_p, tracker_data, tracker_rows, track_every,
                project, project_p, project_data, adaptive, size_p, size_data,
                t0, h_step, h_last, n_steps, lengths, times, save_step, save_offset, save_time, saved,
                x, acc, status, first_bad, path, key,
                x0, acc0, side, bridge, fresh, aux, t, h, t_save, end, moved, within, status0, status1, work,
                rows, aux_in, k_in, k, k_end, s_start, trial,
            )  # fmt: skip
            bad = not columns_finite(x)
            for b in range(n):
                bad = bad or status[b] != OK
            if trial or not bad:
                careful = bad
                break
            x[:] = start
            acc[:] = acc_start
            status[:n] = OK
            status[n:] = events
            trial = True
    if k1 == n_steps:
        while s < save_step.shape[0]:
            _save(saved[s], x, acc, status, save_time[s], t_save, table,
                  observer_p, observer_data, observer_rows, work)  # fmt: skip
            s += 1
