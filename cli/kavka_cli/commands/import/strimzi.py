"""`kavka import strimzi`: Strimzi's resources as Kavka's, on stdout; what has no counterpart is told on stderr."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

import yaml

from kavka_cli.output import CommandError, complain, note
from kavka_cli.strimzi import import_strimzi
from kavka_operator.api.files import BadResourcesError, written

HELP = "Print Strimzi's Kafka, KafkaNodePool, KafkaTopic and KafkaUser as Kavka's resources; nothing is applied."


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka import strimzi`."""
    parser.add_argument("files", nargs="+", metavar="FILE", type=Path, help="A file, a directory, or - for stdin.")


def run(options: Namespace) -> int:
    """Print the resources; the exit code."""
    try:
        documents = [document.value for _, document in written(options.files)]
        found = import_strimzi(documents)
    except BadResourcesError as error:
        return complain(error)
    except (KeyError, TypeError, AttributeError) as error:
        return complain(CommandError(f"a resource is not as Strimzi's definitions have it: {error!r}"))
    yaml.safe_dump_all(found.resources, sys.stdout, sort_keys=False, allow_unicode=True)
    for remark in found.remarks:
        note(remark)
    return 0 if found.resources else complain(CommandError("the files have no resource of Strimzi"))
