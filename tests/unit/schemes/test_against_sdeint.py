"""Fed the same dW, two implementations agree: sdeint's itoEuler and stratHeun, written by others."""

import numpy as np
import pytest

from sgdsde.schemes import methods

sdeint = pytest.importorskip("sdeint", reason="sdeint is an oracle of the tests, not a dependency")


@pytest.mark.parametrize("name, oracle", [("euler-maruyama", "itoEuler"), ("heun", "stratHeun")])
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("m", [1, 2, 3])
def test_paths_agree(lab, name, oracle, d, m):
    n_steps = 50
    times = np.linspace(0.0, 1.0, n_steps + 1)
    rng = np.random.default_rng([d, m])
    dW = rng.normal(size=(n_steps, m)) * np.sqrt(1 / n_steps)
    y0 = rng.normal(size=d)
    theirs = getattr(sdeint, oracle)(
        lambda y, t: lab.drift(t, np.atleast_1d(y), lab.p),
        lambda y, t: lab.columns(t, np.atleast_1d(y), lab.p, m),
        y0,
        times,
        dW=dW,
    )
    scheme = methods[name]
    step, scratch = scheme.kernel("general", scheme.calculus[0]), scheme.work(d, m)[1]
    x = y0[:, None]
    for k in range(n_steps):
        h = np.full(1, 1 / n_steps)
        x = lab.take(step, lab.mixed, x, times[k : k + 1], h, dW[k][:, None], lab.p, scratch)
        np.testing.assert_allclose(x[:, 0], theirs[k + 1], rtol=0, atol=1e-12)
