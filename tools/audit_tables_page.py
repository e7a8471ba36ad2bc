"""The page about the Parquet files of the audit analytics, from their columns and the questions themselves.

python -m tools.audit_tables_page            rewrites the page
python -m tools.audit_tables_page --check    says whether it has drifted
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from kavka_audit.delta.columns import CHAINS, DEAD_LETTERS, EVENTS
from kavka_audit.delta.daily_columns import DAILY, DAYS
from kavka_audit.lake.columns import COUNTS, CUTS, ENTRIES, SNAPSHOT
from kavka_audit.lake.directory import Lake
from kavka_audit.questions.query_runner import Settings, ask, questions
from tools.pages import write_or_check

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "audit-tables.md"
HEAD = """\
# Tables of the audit analytics

[`kavka audit run`](../how-to/audit.md) writes these Parquet files into its directory. Columns that end in `_ms` and are
no `throttle_time_ms` are moments in milliseconds since 1970; sizes are in bytes. Columns are added and never renamed.
This page is made by `make generate`.
"""
ENTRIES_WORDS = """\
## entries/TOPIC_ID/PARTITION-FIRST-UNTIL.parquet

The records of the audit topic, each once. `kind` is `event`, `loss`, `head` or `end`, as in the
[chain](../explanation/audit.md#what-the-chain-proves); `dead` for a record that is no entry, with the `problem` and the
record itself in `record_headers` (JSON, values in base64) and `record_value`;
`missed` for `lost` records that the topic had deleted before they were read. `outcome` is `allowed`, `denied` or
`delayed`. `resource` of a delay is the entity with the quota. An event in another version of OCSF than this program
reads has its value in `record_value` too, so that fields of a later version are kept.
"""
COUNTS_WORDS = """\
## counts/TOPIC_ID/PARTITION-FIRST-UNTIL.parquet

What clients tell of their records, and what stands in the topics: [what is compared](../how-to/completeness.md).
`tier` is `producer` or `consumer` for what is told, `log` for what stands there, `uncounted` for offsets that were not
looked at, `dead` for a record that is no report, with the `problem`, and `missed` for reports that were deleted before
they were read. Rows are kept for two weeks.
"""
CUTS_WORDS = """\
## cut.parquet

The last entry of each chain that was deleted from `entries`, as it was too old.
"""
SNAPSHOT_WORDS = """\
## snapshot/TABLE.parquet

The cluster as it was at the last run, with `labels` from its resources and from `--owners`, and what completeness was
judged with: topics that were `counted`, days that were `stale`, and `verdicts` on the others.
"""
DELTA_WORDS = """\
## events

A table of Delta Lake, which `--table-format delta` writes in place of `entries`: its rows but those of the kind `dead`,
partitioned by `day`, which is that of `written_time`. What has no time stands under the day of the run; what was
written more than 400 days before it, or more than one after it, stands under the nearest of these days. A time after
the year 9999 is its end. The columns below have Delta's types.
"""
DEAD_WORDS = """\
## dead_letters

A table of Delta Lake: the rows of the kind `dead`, each with the record itself, as far as it is kept: `record_headers`
is NULL where they are longer than 1.5 MiB as JSON, and `record_value` ends there. `kavka audit replay` reads them
again.
"""
CHAINS_WORDS = """\
## chains

A table of Delta Lake: a row for each chain. `verdict` is `sound` or `damaged`, by hashes and links alone, and
`unchecked` in the row `(others)` for chains of which there are more than 20,000, and of a chain that was converted and
not read since. `fault` and `fault_sequence` tell the
first of `damages`, in the words of [`kavka audit verify`](../explanation/audit.md). `restarts` counts how often records
were deleted before they were read: what stood there is not judged; `is_before_hole` says it of what followed the last
entry. A chain goes when no run has read an entry of it for `--keep-days`, as `read_time` tells.
"""
DAILY_WORDS = """\
## Daily tables

Tables of Delta Lake beside `events`, partitioned by `day` as it is: what the answers are made of. `use_daily` has the
bytes, records and times of each use, with its first and last time. `traffic_daily` has buckets of ten minutes.
`denials_delays_changes` has the events that are no use of a topic that was allowed, one a row. `throttled_use_daily`
has what clients moved in the minutes in which they were held back. `sequence_ranges_daily` has the sequences of each
chain that are there. `daily_days` has a digest of the files that each day was made of.
"""


def page() -> str:
    """The page, as it should be."""
    with TemporaryDirectory() as directory:
        lake = Lake(Path(directory))
        with lake.held("none"):
            ask(lake, Settings(0), 1)
        lines = [HEAD, "## tables/NAME.parquet\n", *_answers(lake), ENTRIES_WORDS, *_columns(ENTRIES.items())]
    lines += [COUNTS_WORDS, *_columns(COUNTS.items()), CUTS_WORDS, *_columns(CUTS.items())]
    for words, columns in ((DELTA_WORDS, EVENTS), (DEAD_WORDS, DEAD_LETTERS), (CHAINS_WORDS, CHAINS)):
        lines += [words, *_columns(columns.items())]
    lines.append(DAILY_WORDS)
    for name, daily in DAILY.items():
        lines += [f"### {name}\n", *_columns(daily.delta_columns.items())]
    lines += ["### daily_days\n", *_columns(DAYS.items())]
    lines.append(SNAPSHOT_WORDS)
    for name, columns in SNAPSHOT.items():
        lines += [f"### {name}\n", *_columns(columns.items())]
    return "\n".join(lines).rstrip() + "\n"


def _answers(lake: Lake) -> Iterator[str]:
    with duckdb.connect() as connection:
        for question in questions():
            relation = connection.read_parquet(str(lake.tables / f"{question.name}.parquet"))
            yield f"### {question.name}\n"
            yield f"*{question.title}* {question.explanation}\n"
            yield from _columns(zip(relation.columns, map(str, relation.types), strict=True))


def _columns(columns: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield "| column | type |"
    yield "|---|---|"
    yield from (f"| `{name}` | {kind} |" for name, kind in columns)
    yield ""


def main() -> int:
    """Write the page or check it; returns the exit code."""
    return write_or_check(PAGE, page(), "questions")


if __name__ == "__main__":
    sys.exit(main())
