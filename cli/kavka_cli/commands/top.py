"""`kavka top`: the screen over a cluster that runs, or its tables once."""

import json
import logging
import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from kavka_cli.local_clusters import add_state_directory
from kavka_cli.output import CommandError, complain, say
from kavka_cli.target import Target, add_target, find_target, target_options
from kavka_operator.kafka.admin import AdminError
from kavka_operator.optional_libraries import lacking

if TYPE_CHECKING:
    from kavka_operator.live_views.sources import ClusterSource

HELP = (
    "Watch clients, topics, groups, quotas, nodes, transactions and share groups of a cluster, of any Kafka too; `?`"
    " shows the keys."
)
EVERY_SECONDS_MIN, EVERY_SECONDS_MAX = 0.5, 3600.0
VIEW_NAMES = ("clients", "topics", "groups", "quotas", "nodes", "transactions", "shares")


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka top`."""
    add_state_directory(parser)
    add_target(parser)
    parser.add_argument("--every", type=float, default=2.0, metavar="SECONDS", help="Refresh interval (%(default)s).")
    words = "Print the tables once, from two looks that far apart, and exit; needs no terminal."
    parser.add_argument("--once", action="store_true", help=words)
    parser.add_argument("--view", choices=VIEW_NAMES, help="With --once: only this table.")
    parser.add_argument("--output", "-o", choices=("table", "json"), default="table", help="With --once: the format.")


def run(options: Namespace) -> int:
    """Show the screen until it is left, or print the tables once; the exit code."""
    try:
        if not EVERY_SECONDS_MIN <= options.every <= EVERY_SECONDS_MAX:
            raise CommandError(f"--every is from {EVERY_SECONDS_MIN:g} to {EVERY_SECONDS_MAX:g} seconds")
        if not options.once and (options.view or options.output != "table"):
            raise CommandError("--view and --output are of --once; the screen has keys for them")
        return _print_once(options) if options.once else _show_screen(options)
    except (CommandError, AdminError) as error:
        return complain(error)


def _show_screen(options: Namespace) -> int:
    if lack := lacking("kavka top", "top", "kavka_top", "rich", "textual"):
        raise CommandError(lack)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CommandError("top draws on a terminal, and this is none; kavka top --once prints its tables")
    from kavka_top.app import Top

    found = find_target(target_options(options))
    # What the client logs would be written over the screen.
    logging.getLogger("kafka").addHandler(logging.NullHandler())
    source = _source(found)
    screen = Top(found.name, source, options.every)
    screen.run()
    source.close()
    return screen.return_code or 0


def _print_once(options: Namespace) -> int:
    if lack := lacking("kavka top --once", "top", "kavka_top"):
        raise CommandError(lack)
    from kavka_top import once

    found = find_target(target_options(options))
    source = _source(found)
    try:
        history = once.look_twice(source, options.every)
    finally:
        source.close()
    names = [options.view] if options.view else list(VIEW_NAMES)
    if options.output == "json":
        say(json.dumps(once.document(history, names), indent=2))
    else:
        say("\n".join(once.tables(history, names)).rstrip())
    return 0


def _source(found: Target) -> "ClusterSource":
    from kavka_operator.kafka.offsets_and_lag import Onlooker
    from kavka_operator.live_views.sources import ClusterSource

    return ClusterSource(found.name, found.bootstrap, found.urls, lambda address: Onlooker(address, found.security))
