"""The layout of the chain as it is published: the verifier of that page, which knows nothing of Kavka's code."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kavka_broker.core.audit.chain import HEAD_MS
from kavka_broker.core.audit.chain_ends import End
from kavka_broker.core.audit.cloud_events import headers_of
from kavka_broker.core.audit.heads import value_of
from tests.unit.audit.trails import CLUSTER, KEY, OTHER_CLUSTER, SECOND_MS, Node, Trail, long_trail

PAGE = Path(__file__).parents[3] / "docs/reference/audit-chain.md"
Verifier = Callable[[Any, bytes, str], dict[str, int]]


def published() -> Verifier:
    """The verifier of the page; it imports `hashlib`, `hmac`, `json` and `struct`, and nothing else."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert re.findall(r"^import (\w+)$", code, re.MULTILINE) == ["hashlib", "hmac", "json", "struct"]
    scope: dict[str, Any] = {}
    exec(code, scope)
    verifier: Verifier = scope["verify"]
    return verifier


def records(trail: Trail) -> list[tuple[dict[str, str], bytes]]:
    found = []
    for entry in trail.entries:
        texts = {name: (value or b"").decode() for name, value in headers_of(entry)}
        found.append((texts, entry.value))
    return found


def test_it_proves_a_trail_up_to_where_kavka_does() -> None:
    trail = long_trail()
    last_heads = {source: trail.entries[trail.heads_of(source)[-1]].sequence for source in trail.verdicts()}
    assert published()(records(trail), KEY.secret, CLUSTER) == last_heads
    ours = trail.verdicts()
    assert {source: last_heads[source] for source in ("1-1", "1-2", "2-2", "3-1")} == {
        source: ours[source].proved_sequence for source in ("1-1", "1-2", "2-2", "3-1")
    }
    assert ours["2-1"].proved_sequence > last_heads["2-1"], "the chain of a killed node is proved by the next one"


@pytest.mark.parametrize(
    ("place", "changes", "words"),
    [
        (500, {"value": b"{}"}, "does not have its hash"),
        (500, {"time_ms": 1}, "does not have its hash"),
        (0, {"signature": bytes(32)}, "is not signed by this key"),
    ],
)
def test_it_finds_what_was_changed(place: int, changes: dict[str, Any], words: str) -> None:
    trail = long_trail()
    trail.entries[place] = replace(trail.entries[place], **changes)
    with pytest.raises(ValueError, match=words):
        published()(records(trail), KEY.secret, CLUSTER)
    del trail.entries[place]
    with pytest.raises(ValueError, match="does not join"):
        published()(records(trail), KEY.secret, CLUSTER)


def test_it_takes_no_trail_of_another_cluster_and_none_that_names_no_cluster() -> None:
    trail = long_trail()
    with pytest.raises(ValueError, match=f"1-1 0: the head does not name the cluster {OTHER_CLUSTER}"):
        published()(records(trail), KEY.secret, OTHER_CLUSTER)
    older = Trail(nodes=[Node(number, cluster="") for number in (1, 2, 3)])
    older.run(2 * HEAD_MS // SECOND_MS)
    with pytest.raises(ValueError, match=f"1-1 0: the head does not name the cluster {CLUSTER}"):
        published()(records(older), KEY.secret, CLUSTER)


def test_the_values_of_heads_are_told_as_the_page_shows() -> None:
    ends = [End("1-6", 41, b"\x5f\x0c" * 16, is_certain=True), End("1-6", 43, b"\xb4\xa1" * 16, is_certain=False)]
    shown = re.findall(r"```json\n(.*?)\n```", PAGE.read_text(), re.DOTALL)
    cluster = "4L6g3nShT-eMCtK--X86sw"
    told = re.sub(r"[0-9a-f]{64}", lambda digits: f"{digits[0][:4]}...", value_of(cluster, ends).decode())
    assert [value_of(cluster).decode(), told] == shown
