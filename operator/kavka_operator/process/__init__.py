"""The operator's process on Kubernetes, on top of kopf: `kavka-operator`."""

import sys

from kavka_operator.optional_libraries import lacking


def main() -> None:
    """Run until a signal ends it."""
    if words := lacking("kavka-operator", "operator", "kopf", "kubernetes"):
        sys.exit(f"error: {words}")
    from kavka_operator.process.operator import main as run

    run()
