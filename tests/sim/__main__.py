"""See `runner`."""

import sys

from tests.sim.runner import main

sys.exit(main())
