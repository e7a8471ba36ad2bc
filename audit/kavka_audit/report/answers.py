"""Each answer in one line, from the first rows of its table."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from kavka_audit.questions.query_runner import Table
from kavka_audit.report.number_format import moment, percent, seconds, sized, tier

Row = Mapping[str, Any]


def answer(table: Table) -> str:
    """Return the answer in one line."""
    if not table.count:
        return NOTHING[table.question.name]
    first = table.dicts()[0]
    return FOUND[table.question.name](first, table)


def counted(table: Table) -> int:
    """Return how many rows of an answer count: of changes, those that are not the operator's."""
    if table.question.name != "config_changes" or not table.rows:
        return table.count
    return int(table.dicts()[0].get("by_others_total", table.count))  # an earlier version had no such column


def _topics(first: Row, table: Table) -> str:
    held = f", {sized(first['bytes'])}" if first["bytes"] else ""
    last = f", last used by {first['last_principal']}" if first["last_principal"] else ""
    of = f", of {first['owner']}" if first["owner"] else last
    return f"{_many(table.count, 'topic')}; the largest is {first['topic']}{held}{of}."


def _payers(first: Row, table: Table) -> str:
    return f"{_many(table.count, 'principal')}; {first['principal']} the most, {percent(first['share'])} of all bytes."


def _label_payers(first: Row, table: Table) -> str:
    parts = [
        f"{row['value'] or 'none'} {percent(row['share'])}" for row in table.dicts() if row["label"] == first["label"]
    ]
    return f"By {first['label']}: {', '.join(parts[:5])}."


def _grants(first: Row, table: Table) -> str:
    return f"{_many(table.count, 'rule')}, as {first['operation']} of {first['resource']} for {first['principal']}."


def _first_uses(first: Row, table: Table) -> str:
    new = [row for row in table.dicts() if row["is_new"]]
    if not new:
        return "Nobody lately, as far as the trail goes back."
    last = new[0]
    more = f", and {len(new) - 1:,} more" if len(new) > 1 else ""
    return f"{last['principal']} ({last['operation']} {last['topic']}){more} lately."


def _lineage(first: Row, table: Table) -> str:
    return (
        f"{_many(table.count, 'pair')}; most is read by {first['reader']} from {first['writer']} in {first['topic']}."
    )


def _denied(first: Row, table: Table) -> str:
    who = first["principal"] or f"a failed login from {first['address']}"
    return f"{_many(table.count, 'kind')} of refusals; most often {who}: {first['operation']} {first['resource']}."


def _throttled(first: Row, table: Table) -> str:
    client = f"{first['principal']} as {first['client_id'] or 'no client id'}"
    return f"{_many(table.count, 'incident')}; the longest was {client}, {seconds(first['throttle_time_ms'])} in all."


def _fitting(first: Row, table: Table) -> str:
    limits = f"{sized(first['fitting_limit'])}/s instead of {sized(first['quota_limit'])}/s"
    return f"For {first['entity']}: {limits} ({first['quota_type']}, {_many(first['minutes'], 'minute')} observed)."


def _hot(first: Row, table: Table) -> str:
    place = f"{first['topic']}-{first['partition']}"
    return (
        f"{_many(table.count, 'partition')}; {place} holds {first['times_the_mean']:.1f} times the mean of its topic."
    )


def _changes(first: Row, table: Table) -> str:
    key = f" {first['config_key']}" if first["config_key"] else ""
    words = f"{first['principal']} {first['operation']} {first['resource_type']} {first['resource']}{key}"
    count = counted(table)
    operators = table.count - count
    if not count:
        return f"{_many(operators, 'change')}, all by the operator."
    more = f"; {operators:,} more by the operator" if operators else ""
    return f"{_many(count, 'change')}; the last was {words}{more}."


def _completeness(first: Row, table: Table) -> str:
    judged = [row for row in table.dicts() if row["is_closed"]]
    wrong = [row for row in judged if row["missing"] or row["duplicates"]]
    if not judged:
        return "No bucket is closed yet."
    if not wrong:
        return f"Yes, in each of {_many(len({row['bucket_ms'] for row in judged}), 'bucket')} of ten minutes."
    where = f"{first['topic']}, {moment(first['bucket_ms'])}, {tier(first)}"
    words = f"{first['missing']:,} missing and {first['duplicates']:,} twice of {first['expected']:,}"
    return f"No: {words} ({where}){_others(len(wrong) - 1)}."


def _topics_whole(first: Row, table: Table) -> str:
    lacking = [row for row in table.dicts() if row["missing"] or row["duplicates"]]
    if not lacking:
        return f"Wholly: all of the last day, of {_many(table.count, 'topic and tier', 'topics and tiers')}."
    share = f"{first['completeness'] * 100:.3f} %"
    return f"The least: {first['topic']}, {share} {tier(first)}; {len(lacking)} of {table.count} are not whole."


def _others(count: int) -> str:
    return f", and in {_many(count, 'other bucket')}" if count else ""


def _gaps(first: Row, table: Table) -> str:
    return "; ".join(f"{row['gap']}: {row['place']}{_counted(row)}" for row in table.dicts()[:5]) + "."


def _talkers(first: Row, table: Table) -> str:
    words = f"{first['principal']} as {first['client_id'] or 'no client id'}, {first['operation']} {first['topic']}"
    return f"{words}: {sized(first['bytes'])}, {percent(first['share'])} of all."


def _traffic(first: Row, table: Table) -> str:
    written, read = sized(first["written_bytes_total"]), sized(first["read_bytes_total"])
    return f"{written} written and {read} read in {_many(table.count, 'bucket')} of ten minutes."


def _counted(row: Row) -> str:
    if row["gap"] == "ahead":
        return f" (by {seconds(row['entries'] * 1000)})"
    return f" ({row['entries']})" if row["entries"] else ""


def _many(count: int, noun: str, nouns: str = "") -> str:
    return f"{count} {noun}" if count == 1 else f"{count:,} {nouns or noun + 's'}"


FOUND: Final[Mapping[str, Callable[[Row, Table], str]]] = {
    "deletable_topics": _topics,
    "chargeback": _payers,
    "label_chargeback": _label_payers,
    "unused_grants": _grants,
    "first_access": _first_uses,
    "lineage": _lineage,
    "denied_operations": _denied,
    "throttle_incidents": _throttled,
    "quota_recommendations": _fitting,
    "hot_partitions": _hot,
    "config_changes": _changes,
    "completeness": _completeness,
    "topic_completeness": _topics_whole,
    "audit_gaps": _gaps,
    "top_talkers": _talkers,
    "traffic": _traffic,
}
NOTHING: Final[Mapping[str, str]] = {
    "deletable_topics": "None that the trail shows to be unused for so long.",
    "chargeback": "Nobody: nothing was written or read.",
    "label_chargeback": "Nothing that was used has a label; see --owners and --by.",
    "unused_grants": "None on topics.",
    "first_access": "Nobody: nothing was written or read.",
    "lineage": "No topic was both written and read.",
    "denied_operations": "Nobody.",
    "throttle_incidents": "Nobody.",
    "quota_recommendations": "Nobody was held back by a limit in bytes.",
    "hot_partitions": "None.",
    "config_changes": "Nobody changed anything.",
    "completeness": "No client tells what it wrote or read.",
    "topic_completeness": "No bucket of the last day is closed, or no client tells.",
    "audit_gaps": "Nothing is missing.",
    "top_talkers": "Nobody: nothing was written or read.",
    "traffic": "Nothing was moved.",
}
ORDER: Final = tuple(FOUND)
"""The order of the report."""
