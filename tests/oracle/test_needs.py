"""What a scheme says its steps need is what they use, for each kind of noise and calculus."""

from dataclasses import replace

import numpy as np

from sgdsde._abi import CORRECTION
from sgdsde._jit import kernel_uncached
from sgdsde.equation import SDE
from sgdsde.schemes import NOISE_KINDS, methods


@kernel_uncached(CORRECTION)
def poison(out, x, t, p, data, work):
    out[:] = np.nan


def test_a_correction_is_asked_for_where_it_is_used():
    """A step that does not ask for the correction does not call it; one that asks does."""

    def drift(t, y):
        return (-y[0],)

    def diffusion(t, y):
        return (y[0],)

    made = SDE(drift, diffusion, dim=1, noise="scalar").bind(0.0, np.ones(1)).kernels()
    asking = set()
    for name, scheme in methods.items():
        for kind in scheme.strong:
            for calculus in scheme.calculus:
                if scheme.prepare is not None:
                    continue
                beyond = scheme.aux_for(kind, calculus)
                aux = np.zeros((beyond.rows(1, 1) if beyond is not None else 0, 1))
                x, one, dW = np.ones((1, 1)), np.full(1, 0.1), np.ones((1, 1))
                status, work = np.zeros(2, np.int64), np.zeros(10_000)
                scheme.kernel(kind, calculus)(
                    made.increment, poison, x, one, one, dW, aux, status, work, made.p, made.data
                )
                asks = {"correction", "columns"} & set(scheme.needs_for(kind, calculus))
                assert (np.isnan(x[0, 0]) or status[0] != 0) == bool(asks), (name, kind, calculus)
                asking |= {(name, kind, calculus)} if "correction" in asks else set()
    some = {kind for kind in NOISE_KINDS if kind != "additive"}
    wanted = {("milstein-symmetric", kind, "ito") for kind in some} | {
        ("implicit-midpoint", kind, "ito") for kind in some
    }
    assert asking - {("implicit-midpoint", "additive", "ito")} == wanted


def test_needs_fall_back_as_kernels_do():
    """A kind that is missing has the needs of general noise, and those of the whole scheme where nothing is said."""
    scheme = replace(
        methods["heun"], needs=("areas",), needs_where={("general", "ito"): ("correction",), ("scalar", "ito"): ()}
    )
    assert scheme.needs_for("scalar", "ito") == ()
    assert scheme.needs_for("diagonal", "ito") == ("correction",)
    assert scheme.needs_for("scalar", "stratonovich") == ("areas",)
