"""How much an answer weighs: what is wrong comes first, so that a look at the top of the page is enough.

`wrong`: records or entries are missing, or there twice. `look`: clients are refused or held back, something is new or
lopsided. `tidy`: nothing is wrong, and something could go or be set better. `well`: nothing was found. `none`: nothing
was measured, so nothing could be found. `told`: an account of what was, which is neither good nor bad.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kavka_audit.questions.query_runner import Table

WORDS: Final = {"wrong": "wrong", "look": "look", "tidy": "tidy up", "well": "well", "none": "no data", "told": "told"}
"""The weights, the heaviest first, with the word for each."""
Row = Mapping[str, Any]


def weights(tables: Mapping[str, Table], untold: Sequence[str] = ()) -> dict[str, str]:
    """Return the weight of each answer, by name. `untold` is what the cluster did not tell."""
    has_trail = any(name in tables and tables[name].count for name in SHOWS_TRAIL)
    lacking = {name for words, names in TOLD_BY.items() if any(words in one for one in untold) for name in names}
    return {name: _weight(table, is_measured=has_trail and name not in lacking) for name, table in tables.items()}


def weight(table: Table) -> str:
    """Return the weight of an answer to which all was measured."""
    return _weight(table, is_measured=True)


def _weight(table: Table, *, is_measured: bool) -> str:
    heavy, is_found = WEIGHTS.get(table.question.name, ("told", _any))
    if heavy == "told":
        return heavy
    rows = table.dicts()
    if table.question.name in MEASURED and not any(row.get("is_closed", True) for row in rows):
        return "none"
    if any(is_found(row) for row in rows):
        return heavy
    if rows and table.question.name == "audit_gaps":
        return "look"
    return "well" if is_measured else "none"


def _any(_: Row) -> bool:
    return True


def _is_new(row: Row) -> bool:
    return bool(row["is_new"])


def _is_lacking(row: Row) -> bool:
    return bool(row.get("is_closed", True) and row["missing"] + row["duplicates"])


def _is_gap(row: Row) -> bool:
    """Whether something is missing for no known reason; a chain without an end is what a killed broker leaves."""
    return bool(row["gap"] != "unended")


MEASURED: Final = frozenset({"completeness", "topic_completeness"})
"""What clients tell of: without that nothing is well."""
SHOWS_TRAIL: Final = ("traffic", "config_changes", "denied_operations", "audit_gaps")
"""Answers of which one has a row as soon as the trail has told anything."""
TOLD_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "its access rules": ("unused_grants",),
    "its quotas": ("quota_recommendations",),
    "records of partitions": ("hot_partitions",),
}
"""Words for what a cluster may not tell, and the questions to which there is no answer then."""
WEIGHTS: Final[Mapping[str, tuple[str, Callable[[Row], bool]]]] = {
    "completeness": ("wrong", _is_lacking),
    "topic_completeness": ("wrong", _is_lacking),
    "audit_gaps": ("wrong", _is_gap),
    "denied_operations": ("look", _any),
    "throttle_incidents": ("look", _any),
    "hot_partitions": ("look", _any),
    "first_access": ("look", _is_new),
    "deletable_topics": ("tidy", _any),
    "unused_grants": ("tidy", _any),
    "quota_recommendations": ("tidy", _any),
}
