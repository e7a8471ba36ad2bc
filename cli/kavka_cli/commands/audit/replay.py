"""`kavka audit replay`: the dead letters of Delta tables again, by the program as it is now."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path

from kavka_cli.output import CommandError, complain
from kavka_operator.optional_libraries import lacking

HELP = (
    "Read the dead letters of Delta tables again, from the bytes that were kept, and move those to the events that this"
    " version of the program understands. A replay that is interrupted leaves each of them once."
)


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka audit replay`."""
    words = "The directory with the tables (%(default)s)."
    parser.add_argument("--directory", type=_directory, default=Path("audit"), metavar="DIR", help=words)
    words = "client: say why dead letters are no events, and how many would be moved, and change nothing."
    parser.add_argument("--dry-run", choices=("none", "client"), default="none", help=words)


def run(options: Namespace) -> int:
    """Replay the dead letters; the exit code."""
    name = "kavka audit replay"
    lack = lacking(name, "audit", "kavka_audit_run", "kavka_audit", "duckdb") or lacking(name, "delta", "deltalake")
    if lack:
        return complain(CommandError(lack))
    from kavka_audit_run.replay import run_replay

    return run_replay(options.directory, is_dry_run=options.dry_run == "client")


def _directory(text: str) -> Path:
    """Return a directory of this machine. Raises ArgumentTypeError for the address of a store."""
    if "://" in text:
        raise ArgumentTypeError(f"{text} is no directory of this machine; dead letters of a store are not replayed")
    return Path(text)
