"""Symmetries of the loss and what they do to SGD: charges, their laws, equilibria, and motion along and across orbits.

Offers `check_symmetry`, `discover_symmetries`, `Charge`, `ChargeLaw`, `decompose`, `orbit_coordinate`,
`noise_equilibrium` and `OrbitProjection`.
"""

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
from sgdsde.symmetry.motion import Motion, MotionTrack
from sgdsde.symmetry.projection import OrbitProjection

__all__ = [
    "Catch",
    "Charge",
    "ChargeLaw",
    "ChargeReport",
    "ChargeTerms",
    "Decomposition",
    "Discovery",
    "GroupEquilibrium",
    "LinearLayers",
    "Motion",
    "MotionTrack",
    "NoiseEquilibrium",
    "OrbitProjection",
    "SymmetryReport",
    "Witness",
    "check_symmetry",
    "decompose",
    "group_equilibrium",
    "discover_symmetries",
    "noise_equilibrium",
    "orbit_coordinate",
    "orbit_potential",
    "run_and_catch",
]
