"""`kavka audit run`: the audit trail of a cluster into files, and the questions that they answer."""

import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import partial
from pathlib import Path

from kavka_audit.delta.directory_names import check_directory
from kavka_audit.engine import DuckDB, Engine, EngineError
from kavka_audit.lake.directory import Lake, LakeError
from kavka_audit.lake.snapshot import Snapshot
from kavka_audit.questions.query_runner import Settings, Table
from kavka_audit.report.answers import ORDER
from kavka_audit.report.summary import summary
from kavka_audit.run import KEEP_DAYS, PAGE, Files, Outcome, refresh
from kavka_audit_run.cluster_inventory import Accountant, Accounted
from kavka_audit_run.destination import Addressing, format_in, lake_of, store_of
from kavka_audit_run.owners import OWNER, labels_of
from kavka_audit_run.quota_suggestions import recommendations
from kavka_audit_run.record_counts import KeptBooks
from kavka_cli.client_properties import java_properties
from kavka_cli.output import CommandError, complain, say
from kavka_cli.suggested_quotas import How, cluster_name, file_of
from kavka_cli.target import Target, TargetOptions, find_target
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.audit_topic import AuditTopic
from kavka_operator.optional_libraries import lacking

DAYS_MAX = 3_650
SECONDS_MAX = 86_400
ANSWER_SECONDS = 300
"""Between two answers of a run that goes on, unless said otherwise."""
BILL_MAX = Decimal(10) ** 12
QUOTAS = "quotas.yaml"
NEW_FORMAT = "parquet"
SCHEMA = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?")
"""A schema of Spark's own catalog, or of one that is named before it."""
SUMMARY_FILE = "KAVKA_AUDIT_SUMMARY"
"""The environment variable that names a file for the weights of the answers: what a pod leaves when it ends."""
Told = tuple[Outcome, Sequence[str]]
"""The answers, and what the cluster did not tell."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Options of a person: where the files go, what the questions are asked with, and which engine computes.
    `directory` is a path, or the address of an S3 store, to which the options that follow `engine` belong.
    """

    directory: Path | str
    unused_days: int = 30
    new_days: int = 7
    bill: str = "0"
    keep_days: int = KEEP_DAYS
    owners: Path | None = None
    by: str = OWNER
    every_seconds: int | None = None
    processing_time_seconds: int | None = None
    catalog_schema: str = ""
    engine: str = "duckdb"
    cluster_id: str = ""
    table_format: str = ""  # that of the tables that are there already; of new ones NEW_FORMAT
    s3_endpoint: str | None = None
    s3_region: str | None = None
    s3_addressing: Addressing = "auto"
    work_directory: Path | None = None


def run_audit(asked: TargetOptions, wanted: Wanted, sleep: Callable[[float], None] = time.sleep) -> int:
    """Take in what is new in the trail and print an answer a line, once or every so often; the exit code."""
    every, processing_time = wanted.every_seconds, wanted.processing_time_seconds
    for option, seconds in (("--every", every), ("--processing-time", processing_time)):
        if seconds is not None and not 1 <= seconds <= SECONDS_MAX:
            return complain(CommandError(f"{option}: {seconds} is not from 1 to {SECONDS_MAX}"))
    if processing_time is not None:
        from kavka_audit_run.live_run import run_live

        return run_live(asked, wanted, processing_time, every or ANSWER_SECONDS)
    if every is None:
        return _run(asked, wanted)
    while True:
        code = _run(asked, wanted)
        try:
            sleep(every)
        except KeyboardInterrupt:
            return code


def _run(asked: TargetOptions, wanted: Wanted) -> int:
    try:
        told = ask_trail(asked, wanted)
    except (CommandError, AdminError, LakeError, EngineError) as error:
        return complain(error)
    print_answers(*told)
    leave_summary(*told)
    return 0


def leave_summary(outcome: Outcome, untold: Sequence[str]) -> None:
    """Write the weights of the answers where the environment asks for them. The answers do not depend on it."""
    if not (place := os.environ.get(SUMMARY_FILE)):
        return
    try:
        Path(place).write_text(summary(datetime.now(UTC), outcome.tables, untold, outcome.chains))
    except OSError as error:
        say(f"no summary at {place}: {error.strerror}")


def print_answers(outcome: Outcome, untold: Sequence[str]) -> None:
    """Print an answer a line, where it is, and what the cluster did not tell."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K")
    taken = outcome.ingested
    say(f"{taken.records} records of the trail were new; {taken.dead} are no entries, {taken.missed} were missed\n")
    place = outcome.page.removesuffix(PAGE)
    for name in ORDER:
        title = outcome.tables[name].question.title
        say(f"{title}\n    {outcome.answer(name)}\n    {place}tables/{name}.parquet")
    if outcome.unknown:
        count = len(outcome.unknown)
        say(f"passed over, as no run has written them: {count} files in {place}; the first is {outcome.unknown[0]}")
    for words in untold:
        say(f"not told: {words}")
    if QUOTAS in outcome.besides:
        say(f"limits that would have fitted, to review and apply: {place}{QUOTAS}")
    say(f"\n{outcome.page}")


@dataclass(frozen=True, slots=True)
class Observed:
    """A cluster as it is now: what it tells of itself, its audit topic, and what its clients count."""

    found: Target
    accounted: Accounted
    snapshot: Snapshot
    trail: AuditTopic
    books: KeptBooks


@contextmanager
def observed(asked: TargetOptions, wanted: Wanted) -> Iterator[Observed]:
    """Give the cluster. Raises CommandError and AdminError."""
    found = find_target(asked)
    labels = labels_of(found.resources, wanted.owners, wanted.by)
    accountant = Accountant(found.bootstrap, found.security)
    with closing(accountant):
        accounted = accountant.account()
        name = asked.cluster or ("" if asked.bootstrap else found.name)
        snapshot = Snapshot(
            accounted.cluster_id,
            {**accounted.tables, "labels": labels},
            accounted.untold,
            name,
            found.bootstrap.partition(",")[0],
        )
        trail = AuditTopic(found.bootstrap, found.security, accounted.topic_id)
        with closing(trail), closing(KeptBooks(found, accountant, accounted)) as books:
            yield Observed(found, accounted, snapshot, trail, books)


def ask_trail(asked: TargetOptions, wanted: Wanted) -> Told:
    """Take in what is new and answer. Raises CommandError, AdminError, LakeError and EngineError."""
    wanted = with_format(wanted)
    check(wanted)
    with observed(asked, wanted) as seen, opened(wanted, seen.found, seen.accounted.topic_id) as engine:
        return answer_from(asked, wanted, seen, lake_of(wanted, progress), engine)


def answer_from(asked: TargetOptions, wanted: Wanted, seen: Observed, lake: Lake, engine: Engine) -> Told:
    """Take in what is new by an engine, and answer. Raises CommandError, LakeError and EngineError."""
    besides, keep_days = files_of(asked, seen.found, seen.accounted), wanted.keep_days
    settings = settings_of(wanted)
    outcome = refresh(lake, seen.trail, seen.snapshot, settings, progress, seen.books, keep_days, engine, besides)
    return outcome, seen.accounted.untold


def settings_of(wanted: Wanted) -> Settings:
    """Return what the questions are asked with. Raises CommandError."""
    days = whole_days("--unused-days", wanted.unused_days), whole_days("--new-days", wanted.new_days)
    return Settings(int(time.time() * 1000), *days, cents(wanted.bill))


def with_format(wanted: Wanted) -> Wanted:
    """Return options that say which format the tables have. Raises CommandError and LakeError."""
    if wanted.table_format:
        return wanted
    check_store(wanted.directory)
    return replace(wanted, table_format=format_in(wanted) or NEW_FORMAT)


def check(wanted: Wanted) -> None:
    """Raise CommandError, or LakeError, where options cannot be as they are."""
    asked_with = settings_of(wanted)
    keep_days = whole_days("--keep-days", wanted.keep_days)
    if keep_days < max(asked_with.unused_days, asked_with.new_days):
        raise CommandError(
            f"--keep-days: {keep_days} is less than --unused-days or --new-days, which look back further"
        )
    check_engine(wanted.engine)
    check_format(wanted)
    check_store(wanted.directory)


def files_of(asked: TargetOptions, found: Target, accounted: Accounted) -> Files:
    """Return what makes the file with limits that would have fitted."""

    def besides(tables: Mapping[str, Table]) -> Mapping[str, str]:
        fits = recommendations(tables["quota_recommendations"].dicts(), accounted.quotas)
        lines = file_of(fits, cluster_name(asked, found), found.namespace, found.owners, How()) if fits else ()
        return {QUOTAS: "\n".join(lines)}

    return besides


def check_engine(engine: str) -> None:
    """Raise CommandError where the engine is not there."""
    if engine == "spark" and (words := lacking("kavka audit run --engine spark", "spark", "pyspark")):
        raise CommandError(words)


def check_store(directory: Path | str) -> None:
    """Raise CommandError where the client of S3 stores is not there, and is needed."""
    if isinstance(directory, str) and (words := lacking("kavka audit run --directory s3://...", "s3", "obstore")):
        raise CommandError(words)


def check_format(wanted: Wanted) -> None:
    """Raise CommandError, or LakeError, where tables of the format cannot be written as the other options say."""
    if wanted.processing_time_seconds is not None and (wanted.table_format, wanted.engine) != ("delta", "spark"):
        raise CommandError("--processing-time: only --engine spark with --table-format delta has a query that goes on")
    if wanted.catalog_schema:
        if (wanted.table_format, wanted.engine) != ("delta", "spark"):
            raise CommandError("--catalog-schema: only --engine spark with --table-format delta has Spark's catalog")
        if not SCHEMA.fullmatch(wanted.catalog_schema):
            raise CommandError(f"--catalog-schema: {wanted.catalog_schema!r} is no name as audit, or lake.audit")
    if wanted.table_format != "delta":
        return
    option = "--table-format delta"
    is_stored = isinstance(wanted.directory, str)
    if is_stored and wanted.engine == "spark":
        raise CommandError(
            f"{option}: in an S3 store DuckDB alone writes its tables, as Spark's commits there and those of deltalake"
            " do not see each other; take --engine duckdb, or a directory"
        )
    if words := lacking(f"kavka audit run {option}", "delta", "deltalake"):
        raise CommandError(words)
    directory = wanted.work_directory if is_stored else wanted.directory
    if isinstance(directory, Path):
        check_directory(directory)


@contextmanager
def opened(wanted: Wanted, found: Target, topic_id: str) -> Iterator[Engine]:
    """Give the engine. Raises EngineError and LakeError."""
    if wanted.table_format == "delta":
        with opened_delta(wanted, found, topic_id) as over_tables:
            yield over_tables
        return
    if wanted.engine != "spark":
        yield DuckDB(partial(AuditTopic, found.bootstrap, found.security, topic_id))
        return
    from kavka_audit.spark import engine

    with engine.opened(found.bootstrap, java_properties(found.security), store_of(wanted)) as spark:
        yield spark


@contextmanager
def opened_delta(wanted: Wanted, found: Target, topic_id: str) -> Iterator[Engine]:
    """Give the engine over Delta tables. Raises EngineError."""
    from kavka_audit.delta.engine import DeltaDuckDB

    if wanted.engine != "spark":
        yield DeltaDuckDB(opener=partial(AuditTopic, found.bootstrap, found.security, topic_id))
        return
    from kavka_audit.spark import delta_engine

    with delta_engine.opened(found.bootstrap, java_properties(found.security), wanted.catalog_schema) as spark:
        yield spark


def progress(words: str) -> None:
    """Show how far a run is, to a person who waits."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{words}")
        sys.stderr.flush()


def whole_days(option: str, days: int) -> int:
    """Return the days. Raises CommandError, which names the option, where they are too few or too many."""
    if not 1 <= days <= DAYS_MAX:
        raise CommandError(f"{option}: {days} is not from 1 to {DAYS_MAX}")
    return days


def cents(bill: str) -> int:
    """Return an amount of money in hundredths. Raises CommandError."""
    try:
        amount = Decimal(bill)
    except InvalidOperation:
        amount = Decimal("NaN")
    if not (amount.is_finite() and 0 <= amount <= BILL_MAX and amount * 100 == int(amount * 100)):
        raise CommandError(f"--bill: {bill!r} is no amount from 0 to {BILL_MAX:,} with two digits at the most")
    return int(amount * 100)
