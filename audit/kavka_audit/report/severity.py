"""How much an answer weighs: what is wrong comes first, so that a look at the top of the page is enough.

`wrong`: records or entries are missing, or there twice. `look`: clients are refused or held back, something is new or
lopsided. `tidy`: nothing is wrong, and something could go or be set better. `well`: nothing was found. `none`: nothing
was measured, so nothing could be found. `told`: an account of what was, which is neither good nor bad.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from kavka_audit.questions.query_runner import Table

WORDS: Final = {"wrong": "wrong", "look": "look", "tidy": "tidy up", "well": "well", "none": "no data", "told": "told"}
"""The weights, the heaviest first, with the word for each."""
Row = Mapping[str, Any]


def weight(table: Table) -> str:
    """Return the weight of an answer."""
    heavy, is_found = WEIGHTS.get(table.question.name, ("told", _any))
    if heavy == "told":
        return heavy
    rows = table.dicts()
    if table.question.name in MEASURED and not any(row.get("is_closed", True) for row in rows):
        return "none"
    return heavy if any(is_found(row) for row in rows) else "well"


def _any(_: Row) -> bool:
    return True


def _is_new(row: Row) -> bool:
    return bool(row["is_new"])


def _is_lacking(row: Row) -> bool:
    return bool(row.get("is_closed", True) and row["missing"] + row["duplicates"])


MEASURED: Final = frozenset({"completeness", "topic_completeness"})
"""What clients tell of: without that nothing is well."""
WEIGHTS: Final[Mapping[str, tuple[str, Callable[[Row], bool]]]] = {
    "completeness": ("wrong", _is_lacking),
    "topic_completeness": ("wrong", _is_lacking),
    "audit_gaps": ("wrong", _any),
    "denied_operations": ("look", _any),
    "throttle_incidents": ("look", _any),
    "hot_partitions": ("look", _any),
    "first_access": ("look", _is_new),
    "deletable_topics": ("tidy", _any),
    "unused_grants": ("tidy", _any),
    "quota_recommendations": ("tidy", _any),
}
