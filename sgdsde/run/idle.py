"""Kernels that do nothing, for the slots of a run that are empty."""

from __future__ import annotations

from sgdsde._abi import AUX, CORRECTION, INCREMENT, OBSERVE, TRACK
from sgdsde._jit import kernel


@kernel(INCREMENT)
def no_increment(out, x, t, h, v, p, data, work):
    out[:] = 0.0


@kernel(CORRECTION)
def no_correction(out, x, t, p, data, work):
    out[:] = 0.0


@kernel(AUX)
def no_aux(aux, dW, h, path, step, key, p, data, work):
    pass


@kernel(OBSERVE)
def no_observer(out, x, t, p, data, work):
    pass


@kernel(TRACK)
def no_tracker(acc, x0, x1, t, h, p, data, work):
    pass
