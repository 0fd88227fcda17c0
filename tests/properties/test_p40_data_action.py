"""(U, V) ↦ (U R_{σ(Vx)}R_{σ(gVx)}⁻¹, gV): keeps the output at x, is an action, with a cocycle; how steep it gets."""

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sgdsde.models import MLP
from sgdsde.symmetry import DataAction, cocycle
from sgdsde.testing import strategies as own


@st.composite
def cases(draw):
    h = draw(st.integers(1, 4))
    model = MLP([2, h, 2], draw(st.sampled_from(["tanh", "sigmoid", "identity"])), biases=draw(st.booleans()))
    theta, x = draw(own.states(model)), draw(own.numbers(2))
    g1, g2 = (draw(own.numbers((h, h))) for _ in range(2))
    assume(max(np.linalg.cond(g1), np.linalg.cond(g2)) < 100)
    action = DataAction(model, x)
    z = model.unflatten(theta)["W1"] @ x + (model.unflatten(theta)["b1"] if model.biases else 0.0)
    assume(np.linalg.norm(z) > 1e-3)
    return action, theta, g1, g2, z


@settings(max_examples=40)
@given(cases(), st.data())
def test_output_axioms_and_steepness(case, data):
    action, theta, g1, g2, z = case
    sigma, h = action.sigma, z.size
    values = [sigma(v) for v in (z, g2 @ z, g1 @ (g2 @ z))]
    sizes = [np.linalg.norm(a) for a in values]
    assume(min(sizes) > 1e-4 * max(sizes))
    spread = max(sizes) / min(sizes)
    cond = np.linalg.cond(g1) * np.linalg.cond(g2)
    size = 1 + np.abs(theta).max()
    moved = action.act(g2, theta)  # kept at x with zeros in σ, too
    np.testing.assert_allclose(action.output(moved), action.output(theta), atol=1e-10 * spread * size**2)
    # R_z jumps where a tail of z passes zero: there two ways of rounding gz give two different R.
    tails = [np.linalg.norm(a[k:]) / np.linalg.norm(a) for a in values for k in range(1, h)]
    assume(min(tails, default=1.0) > 1e-4)
    loose = 1e-9 * cond * spread**2 * size
    np.testing.assert_allclose(action.act(g1, moved), action.act(g1 @ g2, theta), atol=loose)
    np.testing.assert_allclose(cocycle(np.eye(h), z, sigma), np.eye(h), atol=1e-12)
    chained = cocycle(g1, g2 @ z, sigma) @ cocycle(g2, z, sigma)
    np.testing.assert_allclose(chained, cocycle(g1 @ g2, z, sigma), atol=loose)
    a, b = data.draw(own.numbers(2)), data.draw(own.numbers(2))
    apart = np.linalg.norm(action.output(moved, a) - action.output(moved, b))
    allowed = action.lipschitz_bound(g2, theta) * np.linalg.norm(a - b)
    assert apart <= allowed * (1 + 1e-9) + 1e-12 * size**2 * spread
