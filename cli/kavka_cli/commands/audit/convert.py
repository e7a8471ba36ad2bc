"""`kavka audit convert`: the Parquet files of `kavka audit run` into Delta tables, in another directory."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path

from kavka_cli.output import CommandError, complain
from kavka_operator.optional_libraries import lacking

HELP = (
    "Bring what `kavka audit run` keeps as Parquet files into Delta tables in a new directory, with which it goes on by"
    " --table-format delta. The files stay as they are. Interrupted, it goes on where it was."
)


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka audit convert`."""
    parser.add_argument("source", type=_directory, metavar="FROM", help="The directory with the Parquet files.")
    parser.add_argument("target", type=_directory, metavar="TO", help="The directory of the tables; it is made.")


def run(options: Namespace) -> int:
    """Convert; the exit code."""
    name = "kavka audit convert"
    lack = lacking(name, "audit", "kavka_audit_run", "kavka_audit", "duckdb") or lacking(name, "delta", "deltalake")
    if lack:
        return complain(CommandError(lack))
    from kavka_audit_run.convert import run_convert

    return run_convert(options.source, options.target)


def _directory(text: str) -> Path:
    """Return a directory of this machine. Raises ArgumentTypeError for the address of a store."""
    if "://" in text:
        raise ArgumentTypeError(f"{text} is no directory of this machine; a store is not converted")
    return Path(text)
