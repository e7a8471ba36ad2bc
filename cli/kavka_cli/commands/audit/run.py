"""`kavka audit run`: answers from the audit trail, by a package of its own that may not be installed."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import Any

from kavka_cli.local_clusters import add_state_directory
from kavka_cli.output import CommandError, complain
from kavka_cli.target import LABELS, add_target, target_options
from kavka_operator.optional_libraries import lacking

HELP = (
    "Take what is new in the audit trail into Parquet files and answer from them who uses what, who was refused or"
    " held back, and what nobody uses."
)


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka audit run`."""
    add_state_directory(parser)
    add_target(parser, has_pages=False)
    words = "Where the files go (%(default)s); s3://BUCKET/PREFIX is an S3 store."
    parser.add_argument("--directory", type=_directory, default=Path("audit"), metavar="DIR", help=words)
    words = "Of an S3 store: its URL. Left out: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or AWS itself."
    parser.add_argument("--s3-endpoint", metavar="URL", help=words)
    words = "Of an S3 store: the region of the bucket. Left out: AWS_REGION, AWS_DEFAULT_REGION, or us-east-1."
    parser.add_argument("--s3-region", metavar="NAME", help=words)
    words = "Of an S3 store: whether the bucket stands in the path or in the host's name; auto: the host's at AWS."
    parser.add_argument("--s3-addressing", choices=("auto", "path", "virtual"), default="auto", help=words)
    words = "Of an S3 store: where files are worked on; what is there need not be fetched. Left out: the user's cache."
    parser.add_argument("--work-directory", type=Path, metavar="DIR", help=words)
    words = "What computes: DuckDB on this machine, or Spark on as many as it is given (%(default)s)."
    parser.add_argument("--engine", choices=("duckdb", "spark"), default="duckdb", help=words)
    words = (
        "What the rows of the trail are kept in: Parquet files, or Delta tables, which are experimental. Left out: as"
        " in the directory already, and Parquet files in a new one."
    )
    parser.add_argument("--table-format", choices=("parquet", "delta"), default="", help=words)
    words = (
        "With Delta tables: the id of the cluster whose trail this has to be; chains that name none are unsigned then."
        " Left out: the one that the brokers tell, and chains of older nodes may name none."
    )
    parser.add_argument("--cluster-id", metavar="ID", default="", help=words)
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
    words = (
        "With Spark and Delta tables: keep one query running, which takes in what is new every so many seconds, and"
        " answer as often as --every says (300 s), until Ctrl-C."
    )
    parser.add_argument("--processing-time", type=int, metavar="SECONDS", help=words)
    words = "With Spark and Delta tables: the schema of Spark's catalog in which the tables are named."
    parser.add_argument("--catalog-schema", default="", metavar="NAME", help=words)


def run(options: Namespace) -> int:
    """Take in what is new, and print the answers; the exit code."""
    if lack := lacking("kavka audit run", "audit", "kavka_audit_run", "kavka_audit", "duckdb"):
        return complain(CommandError(lack))
    from kavka_audit_run.main import Wanted, run_audit

    try:
        asked = target_options(options, labels=LABELS)
    except CommandError as error:
        return complain(error)
    return run_audit(asked, Wanted(**_wanted(options)))


def _directory(text: str) -> Path | str:
    """Return the directory, or the address as it stands. Raises ArgumentTypeError for one of anything but S3."""
    if "://" not in text:
        return Path(text)
    if not text.startswith(("s3://", "s3a://")):
        raise ArgumentTypeError(f"{text} is neither a directory, as audit, nor an S3 store, as s3://bucket/prefix")
    return text


def _wanted(options: Namespace) -> dict[str, Any]:
    """Return the options of a run, by the names that the package has for them."""
    names = (
        "directory",
        "unused_days",
        "new_days",
        "bill",
        "owners",
        "by",
        "keep_days",
        "engine",
        "cluster_id",
        "table_format",
        "catalog_schema",
    )
    store = ("s3_endpoint", "s3_region", "s3_addressing", "work_directory")
    seconds = {"every_seconds": options.every, "processing_time_seconds": options.processing_time}
    return {name: getattr(options, name) for name in (*names, *store)} | seconds
