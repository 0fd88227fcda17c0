"""`python -m sgdsde` is the command `sgdsde`."""

import sys

from sgdsde.cli import main

sys.exit(main())
