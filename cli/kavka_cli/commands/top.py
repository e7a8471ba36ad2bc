"""`kavka top`: the screen over a cluster that runs."""

import logging
import sys
from argparse import ArgumentParser, Namespace

from kavka_cli.local_clusters import add_state_directory
from kavka_cli.output import CommandError, complain
from kavka_cli.target import add_target, find_target, target_options
from kavka_operator.extras import lacking

HELP = "Watch clients, topics, groups, quotas and nodes of a cluster, of any Kafka too; `?` shows the keys."
EVERY_SECONDS_MIN, EVERY_SECONDS_MAX = 0.5, 3600.0


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka top`."""
    add_state_directory(parser)
    add_target(parser)
    parser.add_argument("--every", type=float, default=2.0, metavar="SECONDS", help="Time between looks (%(default)s).")


def run(options: Namespace) -> int:
    """Show the screen until it is left; the exit code."""
    if lack := lacking("kavka top", "top", "kavka_top", "rich", "textual"):
        return complain(CommandError(lack))
    from kavka_operator.kafka.offsets_and_lag import Onlooker
    from kavka_top.app import Top
    from kavka_top.sources import ClusterSource

    try:
        if not EVERY_SECONDS_MIN <= options.every <= EVERY_SECONDS_MAX:
            raise CommandError(f"--every is from {EVERY_SECONDS_MIN:g} to {EVERY_SECONDS_MAX:g} seconds")
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise CommandError("top draws on a terminal, and this is none; kavka get, describe and explain print lines")
        found = find_target(target_options(options))
    except CommandError as error:
        return complain(error)
    logging.getLogger("kafka").addHandler(
        logging.NullHandler()
    )  # what the client logs would be written over the screen
    source = ClusterSource(found.name, found.bootstrap, found.urls, lambda address: Onlooker(address, found.security))
    screen = Top(found.name, source, options.every)
    screen.run()
    source.close()
    return screen.return_code or 0
