"""Methods, one page each: the formula, the step, and the traits that checks, order tests and the docs table read.

Offers `methods` (name -> Scheme, the pages of this folder, each loaded when it is asked for), `get_scheme`, `check`,
`table`, and `Scheme` to write one's own. A new page is a new method: nothing else is touched.
"""

from sgdsde.schemes._registry import Methods, check, get_scheme, methods, table
from sgdsde.schemes._scheme import NOISE_KINDS, Aux, Scheme

__all__ = ["NOISE_KINDS", "Aux", "Methods", "Scheme", "check", "get_scheme", "methods", "table"]
