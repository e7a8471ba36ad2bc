"""`kavka profile create`: writes down how a Kafka is reached, by a name."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from kavka_cli.client_properties import BOOTSTRAP, OPTION
from kavka_cli.output import CommandError, complain, say
from kavka_cli.profiles import METRICS, REGISTRY, new_profile, profiles
from kavka_cli.target import urls_of

HELP = "Make a profile: the addresses of a Kafka, and how it lets clients in."


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka profile create`."""
    parser.add_argument("name", metavar="NAME", help="The name of the profile.")
    parser.add_argument("--bootstrap", metavar="HOST:PORT,...", help="The addresses of its brokers.")
    words = (
        "How it lets clients in: a file of properties, as Kafka's own tools take it, which is copied; - is the input."
    )
    parser.add_argument(OPTION, type=Path, metavar="FILE", help=words)
    parser.add_argument("--metrics", metavar="URL,...", help="Metrics pages of its brokers.")
    parser.add_argument("--registry", metavar="URL", help="Its schema registry, with Confluent's API.")
    parser.add_argument("--use", action="store_true", help="Use it from now on where nothing names another cluster.")
    parser.add_argument("--replace", action="store_true", help="Write it anew where there is one of this name.")


def run(options: Namespace) -> int:
    """Write the profile; the exit code."""
    known = profiles()
    try:
        urls_of(options.metrics or "")
        more = {BOOTSTRAP: options.bootstrap, METRICS: options.metrics, REGISTRY: options.registry}
        known.put(new_profile(options.name, options.command_config, more), is_new=not options.replace)
        if options.use:
            known.use(options.name)
        is_current = known.current == options.name
    except CommandError as error:
        return complain(error)
    say(f'profile "{options.name}" is {"made and used" if is_current else "made"}')
    return 0
