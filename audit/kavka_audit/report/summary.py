"""The answers of a run in a few bytes, for a place that has room for no more: how much each weighs, and no names.

Kubernetes keeps up to 4,096 bytes that a container leaves when it ends, and gives them to those who may see its pod; an
operator shows them to those who may see the cluster. So neither a principal nor a topic stands in them.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from kavka_audit.questions.query_runner import Table
from kavka_audit.report.chain_summary import Chains, chains_line
from kavka_audit.report.severity import WORDS, weights

SUMMARY_BYTES_MAX: Final = 4_000
CHAINS_LENGTH_MAX: Final = 300


def summary(now: datetime, tables: Mapping[str, Table], untold: Sequence[str], chains: Chains | None) -> str:
    """Return the weights of the answers as JSON, the heaviest first. `untold` is what the cluster did not tell."""
    weighed = weights(tables, untold)
    heaviest = sorted(weighed, key=lambda name: [*WORDS].index(weighed[name]))
    answers = [
        {"question": tables[name].question.title, "weight": WORDS[weighed[name]], "rows": tables[name].count}
        for name in heaviest
    ]
    told = {
        "time": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "answers": answers,
        "chains": chains_line(chains)[:CHAINS_LENGTH_MAX],
    }
    text = json.dumps(told, separators=(",", ":"))
    assert len(text) <= SUMMARY_BYTES_MAX, "the questions are longer than what Kubernetes keeps"
    return text
