"""Settings of all tests: which package is tested, hypothesis profiles, figures without a screen."""

import os
from pathlib import Path

from hypothesis import HealthCheck, settings

os.environ.setdefault("MPLBACKEND", "Agg")

# The first call of a kernel may compile it, so no example has a deadline. In CI every run sees the same examples.
_common = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("sgdsde", **_common)
settings.register_profile("sgdsde-ci", derandomize=True, print_blob=True, **_common)
settings.load_profile("sgdsde-ci" if os.environ.get("CI") else "sgdsde")


def pytest_report_header():
    # `python -m pytest` puts the clone first on sys.path, ahead of an installed package; with PYTHONSAFEPATH=1, as in
    # .ci/run, the installed one is tested. Either way this line says which.
    import numba

    import sgdsde

    return f"sgdsde {sgdsde.__version__} from {Path(sgdsde.__file__).parent}, numba {numba.__version__}"
