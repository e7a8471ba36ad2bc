"""`kavka top`: the screen over a cluster that runs."""

import logging
import sys

from kavka_operator.cli.targets import Asked, target
from kavka_operator.cli.words import CommandError, complain

EVERY_SECONDS_MIN, EVERY_SECONDS_MAX = 0.5, 3600.0


def top(asked: Asked, every_seconds: float) -> int:
    """Show the screen until it is left; the exit code."""
    from kavka_operator.kafka.onlooking import Onlooker
    from kavka_top.app import Top
    from kavka_top.sources import ClusterSource

    try:
        if not EVERY_SECONDS_MIN <= every_seconds <= EVERY_SECONDS_MAX:
            raise CommandError(f"--every is from {EVERY_SECONDS_MIN:g} to {EVERY_SECONDS_MAX:g} seconds")
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise CommandError("top draws on a terminal, and this is none; kavka get, describe and explain print lines")
        found = target(asked)
    except CommandError as error:
        return complain(error)
    logging.getLogger("kafka").addHandler(
        logging.NullHandler()
    )  # what the client logs would be written over the screen
    source = ClusterSource(found.name, found.bootstrap, found.urls, lambda address: Onlooker(address, found.security))
    screen = Top(found.name, source, every_seconds)
    screen.run()
    source.close()
    return screen.return_code or 0
