"""Symmetries of the loss and what they do to SGD: charges, their laws, equilibria, and motion along and across orbits.

Offers `check_symmetry`, `discover_symmetries`, `Charge`, `ChargeLaw`, `NoetherCharge`, `MatrixCharge`, `Angles`,
`decompose`, `orbit_coordinate`, `noise_equilibrium`, `OrbitProjection`, and the actions `LayerAction` and `DataAction`.
"""

from sgdsde.symmetry.actions import Equivariance, LayerAction
from sgdsde.symmetry.actions_data import DataAction
from sgdsde.symmetry.actions_descent import DescentBudget, descent_budget
from sgdsde.symmetry.actions_rotation import cocycle, radial_rotation, spherical_angles
from sgdsde.symmetry.angle import Angles
from sgdsde.symmetry.angle_layers import angular_momentum, layer_angular_momentum
from sgdsde.symmetry.catching import Catch, run_and_catch
from sgdsde.symmetry.charges import Charge, ChargeTerms
from sgdsde.symmetry.checking import SymmetryReport, Witness, check_symmetry
from sgdsde.symmetry.decomposition import Decomposition, decompose, orbit_coordinate
from sgdsde.symmetry.directions import LinearLayers
from sgdsde.symmetry.discovery import discover_symmetries
from sgdsde.symmetry.discovery_report import Discovery
from sgdsde.symmetry.equilibrium import NoiseEquilibrium, noise_equilibrium
from sgdsde.symmetry.group_equilibrium import GroupEquilibrium, group_equilibrium, orbit_potential
from sgdsde.symmetry.law import ChargeLaw, ChargeReport
from sgdsde.symmetry.matrix_charges import LayerReport, MatrixCharge, UnitCharges
from sgdsde.symmetry.matrix_charges_count import ChargeCount, charge_rank, count_charges
from sgdsde.symmetry.matrix_charges_functions import ChargeFunction, PreconditionedCharge
from sgdsde.symmetry.momentum import HeavyBallLaw, HeavyBallReport
from sgdsde.symmetry.motion import Motion, MotionTrack
from sgdsde.symmetry.noether import NoetherCharge
from sgdsde.symmetry.noether_checking import TangencyReport, check_tangency
from sgdsde.symmetry.noether_report import Circulation, NoetherReport, circulation
from sgdsde.symmetry.projection import OrbitProjection

__all__ = [
    "Angles",
    "Catch",
    "Charge",
    "ChargeCount",
    "ChargeFunction",
    "ChargeLaw",
    "ChargeReport",
    "ChargeTerms",
    "Circulation",
    "DataAction",
    "Decomposition",
    "DescentBudget",
    "Discovery",
    "Equivariance",
    "GroupEquilibrium",
    "HeavyBallLaw",
    "HeavyBallReport",
    "LayerAction",
    "LayerReport",
    "LinearLayers",
    "MatrixCharge",
    "Motion",
    "MotionTrack",
    "NoetherCharge",
    "NoetherReport",
    "NoiseEquilibrium",
    "OrbitProjection",
    "PreconditionedCharge",
    "SymmetryReport",
    "TangencyReport",
    "UnitCharges",
    "Witness",
    "angular_momentum",
    "charge_rank",
    "check_symmetry",
    "check_tangency",
    "circulation",
    "cocycle",
    "count_charges",
    "decompose",
    "descent_budget",
    "discover_symmetries",
    "group_equilibrium",
    "layer_angular_momentum",
    "noise_equilibrium",
    "orbit_coordinate",
    "orbit_potential",
    "radial_rotation",
    "run_and_catch",
    "spherical_angles",
]
