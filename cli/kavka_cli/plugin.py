"""Tells whether kubectl started this process, as `kubectl kavka`."""

import sys
from pathlib import Path

PLUGIN = "kubectl-kavka"


def is_plugin() -> bool:
    """Whether kubectl has started this, as `kubectl kavka`."""
    return Path(sys.argv[0]).stem == PLUGIN
