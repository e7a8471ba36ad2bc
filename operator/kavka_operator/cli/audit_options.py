"""The options of `kavka audit run`, whose own package may not be installed."""

from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any


def add_run_options(parser: ArgumentParser) -> None:
    """Add them to the command."""
    words = "How the Kafka of --bootstrap lets clients in: a file of properties, as Kafka's own tools take it."
    parser.add_argument("--command-config", type=Path, metavar="FILE", help=words)
    words = "Where the files go (%(default)s)."
    parser.add_argument("--directory", type=_directory, default=Path("audit"), metavar="DIR", help=words)
    words = "What computes: DuckDB on one processor, or Spark on as many as it is given (%(default)s)."
    parser.add_argument("--engine", choices=("duckdb", "spark"), default="duckdb", help=words)
    words = "Days without use after which a topic may be deleted."
    parser.add_argument("--unused-days", type=int, default=30, metavar="N", help=words)
    parser.add_argument("--new-days", type=int, default=7, metavar="N", help="Days for which a first use is new.")
    words = "An amount of money that is divided by the bytes that each principal has moved."
    parser.add_argument("--bill", default="0", metavar="AMOUNT", help=words)
    words = "Labels of topics and principals in YAML, for those without a resource that has them."
    parser.add_argument("--owners", type=Path, metavar="FILE", help=words)
    words = "The labels by which the bill is divided too (%(default)s)."
    parser.add_argument("--by", default="owner", metavar="LABEL,...", help=words)
    words = "Days after which rows are deleted from the directory (%(default)s)."
    parser.add_argument("--keep-days", type=int, default=400, metavar="N", help=words)
    words = "Go on, with so many seconds between two runs, until Ctrl-C."
    parser.add_argument("--every", type=int, metavar="SECONDS", help=words)


def _directory(text: str) -> Path:
    """Return the directory. Raises ArgumentTypeError for an address of anything else."""
    if "://" in text:
        raise ArgumentTypeError(
            f"{text} is no directory, and no engine writes to anything else yet; write one as audit"
        )
    return Path(text)


def wanted_of(options: Any) -> dict[str, Any]:
    """Return what a person has chosen, by the names that the package has for it."""
    names = ("directory", "unused_days", "new_days", "bill", "owners", "by", "keep_days", "engine")
    return {name: getattr(options, name) for name in names} | {"every_seconds": options.every}
