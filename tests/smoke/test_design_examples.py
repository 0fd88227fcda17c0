"""The examples of the house plan, as written there: one script in three parts, each using what the part before left."""

import numpy as np
import pytest

SPACE = {}

INTEGRATE = """
import numpy as np, sgdsde as sg
from sklearn.datasets import load_digits

# integrate any SDE ------------------------------------------------------------
def drift(t, y, a):      return (-a * y[0],)
def diffusion(t, y, a):  return (0.5 * y[0],)
sde = sg.SDE(drift, diffusion, dim=1, noise="diagonal", calculus="ito", args=(1.0,))
sol = sg.solve(sde, (0, 1), [1.0], method="milstein", dt=1e-3, n_paths=10_000, rng=0, t_eval=[0, .5, 1])
sol.t                    # (n_times,)
sol.y                    # (n_paths, n_times, d); (n_times, d) when n_paths is None
sol.mean(), sol.stderr() # over paths
sol.success, sol.n_diverged, sol.path_status, sol.message, sol.seed, sol.method, sol.dt
"""

SYMMETRY = """
# SGD on real data, and its symmetry ----------------------------------------------
digits  = load_digits(); X = digits.data / 16; Y = np.eye(10)[digits.target]           # (N, d_x), (N, d_y)
model   = sg.models.DeepLinear([64, 10, 10])                                           # two layers = matrix factorisation
problem = sg.SGD(model, X, Y, learning_rate=0.02, batch_size=1, gamma=0.02)            # L + γ‖θ‖²; PyTorch's weight_decay is 2γ
theta0  = model.init(rng=0)
problem.sigma2, problem.loss(theta0), problem.gradient(theta0), problem.covariance(theta0, block="W1"), problem.factor(theta0)
A       = model.symmetries()["B=I"]                    # Generator: .matrix .apply(theta) .exp(lam, theta) .trace(Sigma)
charge  = sg.Charge(A)                                 # charge(theta) = θᵀAθ, for theta (..., d)
charge.rate(problem, theta0)                           # −4γC + 2σ²Tr[ΣA]
charge.residual(problem, theta0)                       # 2γC − σ²Tr[ΣA], zero at the fixed point
law     = sg.ChargeLaw(charge, problem)                # a track: C, its exact one-step mean split into terms, what is left
"""

COMPARE = """
# discrete and continuous, compared -------------------------------------------------
disc = problem.run(theta0, n_steps=2000, n_paths=8, rng=0, t_eval=11, track=law)
cont = sg.solve(problem.sde(), (0, 40), theta0, n_paths=8, rng=1, t_eval=11, track=law)   # dt defaults to η
sg.compare(disc, cont, charge)                         # difference, its standard error, effect size, KS
sg.noise_equilibrium(problem, theta0, A)               # .lam .charge .theta .status
sg.decompose(cont, model.symmetries())                 # parallel and orthogonal parts of the trajectory
"""


@pytest.fixture(scope="module")
def after():
    """Names after each part; a part runs once, after the parts before it."""
    done = {}

    def upto(*parts):
        for part in parts:
            if part not in done:
                space = dict(done[parts[parts.index(part) - 1]]) if parts.index(part) else {}
                exec(part, space)
                done[part] = space
        return done[parts[-1]]

    return upto


def test_integrate_any_sde(after):
    names = after(INTEGRATE)
    sol = names["sol"]
    assert sol.t.tolist() == [0, 0.5, 1]
    assert sol.y.shape == (10_000, 3, 1)
    assert sol.success and sol.n_diverged == 0 and sol.seed == 0 and sol.method == "milstein" and sol.dt == 1e-3
    # 5 standard errors: false alarm 6e-7; Milstein's weak bias at this step is below 5e-4.
    assert np.all(np.abs(sol.mean()[:, 0] - np.exp(-sol.t)) <= 5 * sol.stderr()[:, 0] + 5e-4)


def test_sgd_and_its_symmetry(after):
    names = after(INTEGRATE, SYMMETRY)
    problem, theta0, A, charge = (names[n] for n in ("problem", "theta0", "A", "charge"))
    assert problem.sigma2 == 0.01
    W1 = names["model"].unflatten(theta0)["W1"]
    assert problem.covariance(theta0, block="W1").shape == (W1.size, W1.size)
    assert problem.factor(theta0).shape == (theta0.size, 1797)
    assert charge(theta0) == pytest.approx(theta0 @ A.matrix @ theta0, rel=1e-12)
    assert charge.rate(problem, theta0) == pytest.approx(-2 * charge.residual(problem, theta0), rel=1e-12)


def test_discrete_and_continuous_compared(after):
    names = after(INTEGRATE, SYMMETRY, COMPARE)
    disc, cont = names["disc"], names["cont"]
    assert disc.y.shape == cont.y.shape == (8, 11, names["theta0"].size)
    np.testing.assert_allclose(disc.t, cont.t, rtol=1e-12)
    assert cont.dt == 0.02
    assert disc.success and cont.success
