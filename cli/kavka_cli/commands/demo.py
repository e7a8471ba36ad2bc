"""`kavka demo`: the main job from end to end, by a package of its own that may not be installed."""

from argparse import ArgumentParser, Namespace

from kavka_cli.output import CommandError, complain
from kavka_operator.optional_libraries import lacking

HELP = "The main job: three brokers, 336,776 flights, a kill -9, a roll under load, a quota. Under a minute."


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka demo`."""
    parser.add_argument("--seconds", type=float, default=10.0, help="How long the throttled part lasts (%(default)s).")
    parser.add_argument("--keep", action="store_true", help="Keep the state directory of the demo.")


def run(options: Namespace) -> int:
    """Run the demo; the exit code."""
    if lack := lacking("kavka demo", "demo", "kavka_demo", "confluent_kafka", "duckdb", "kavka_audit", "rich"):
        return complain(CommandError(lack))
    from kavka_demo.main import demo

    return demo(throttled_seconds=options.seconds, keep=options.keep)
