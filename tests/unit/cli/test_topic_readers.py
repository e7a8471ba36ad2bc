"""What `kavka describe topic` prints of readers, at both isolation levels."""

import pytest

from kavka_cli.topic_readers import TopicReaders, as_text, partition_rows, reader_rows
from kavka_operator.domain.observed import SeenPartition
from kavka_operator.domain.transactions import OpenTransaction
from kavka_operator.kafka.offsets_and_lag import Group
from tests.unit.operator.person import run

FIRST, SECOND = ("orders", 0), ("orders", 1)
FOUND = TopicReaders(
    partitions=[SeenPartition("orders", 0, 1, (1,), (1,)), SeenPartition("orders", 1, None, (2,), ())],
    starts={FIRST: 0},
    ends={FIRST: 1_500},
    stable={FIRST: 1_200},
    groups={
        "ahead": Group("Stable", "classic", (), {FIRST: 1_300}),
        "behind": Group("Empty", "classic", None, {FIRST: 1_000, ("other", 0): 5}),
        "lost": Group("Empty", "classic", (), {FIRST: 1_500, SECOND: 7}),
        "others": Group("Stable", "classic", (), {("other", 0): 5}),
    },
    transactions=[OpenTransaction("settle", 4, "Ongoing", 2, 90.0, 60.0, frozenset({FIRST}), {FIRST: 300})],
)


def test_a_reader_of_committed_records_is_behind_the_last_stable_offset() -> None:
    _, *rows = reader_rows(FOUND)
    assert rows == [
        ["ahead", "Stable", "0", "200", "0"],
        ["behind", "Empty", "?", "500", "200"],
        ["lost", "Empty", "0", "?", "?"],
    ]


def test_a_partition_names_the_transaction_that_holds_it_back() -> None:
    _, *rows = partition_rows(FOUND)
    assert rows == [
        ["0", "1", "0", "1,200", "1,500", "settle (Ongoing, 90 s)"],
        ["1", "none", "?", "?", "?", ""],
    ]
    lost = OpenTransaction(None, 9, None, None, 7_300.0, None, frozenset({FIRST}), {FIRST: 300})
    _, (*_, holder), _ = partition_rows(TopicReaders(FOUND.partitions, {}, {}, {}, {}, [lost]))
    assert holder == "producer 9 (no coordinator knows it, 2.0 h)"


def test_a_topic_without_readers_says_so() -> None:
    lines = as_text(TopicReaders(FOUND.partitions, {}, {}, {}, {}, [])).splitlines()
    assert lines[:3] == ["readers:", "  no group has committed an offset", "partitions:"]


@pytest.mark.parametrize("words", [("all",), ("topic",), ("kafkauser", "alice")])
def test_any_kafka_has_topics_to_be_described_and_no_other_resources(words: tuple[str, ...]) -> None:
    code, said = run("describe", *words, "--bootstrap", "127.0.0.1:1")
    assert (code, "name topics: kavka describe topic NAME" in said) == (1, True)
