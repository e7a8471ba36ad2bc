"""What `kavka topics` and `kavka groups` print of what a cluster tells, and of what it does not."""

from dataclasses import replace

from kavka_cli.commands import groups, topics
from kavka_cli.commands.groups import Groups
from kavka_cli.commands.topics import Topics
from kavka_operator.domain.observed import SeenPartition
from kavka_operator.kafka.broker_metrics import ShareFigures
from kavka_operator.kafka.offsets_and_lag import Group

PARTITIONS = (
    SeenPartition("orders", 1, None, (1, 2), ()),
    SeenPartition("orders", 0, 1, (1, 2), (1,)),
    SeenPartition("flights", 0, 2, (2,), (2,)),
)
FOUND = Topics(
    PARTITIONS,
    starts={("orders", 0): 10, ("flights", 0): 0},
    ends={("orders", 0): 1_510, ("flights", 0): 7},
    sizes={("orders", 0): 2_048, ("flights", 0): 0},
    owners={"flights": "topic/all-flights"},
)


def test_topics_are_listed_with_what_is_known() -> None:
    head, *rows = topics.topic_rows(FOUND)
    assert head == ["TOPIC", "PARTITIONS", "REPLICAS", "UNDER-REPLICATED", "RECORDS", "SIZE", "RESOURCE"]
    assert rows == [
        ["flights", "1", "1", "0", "7", "0 B", "topic/all-flights"],
        ["orders", "2", "2", "2", "?", "2.0 KiB", ""],
    ]


def test_the_rate_is_that_of_the_ends() -> None:
    moved = replace(FOUND, later={("orders", 0): 1_600, ("flights", 0): 12}, seconds=2.5)
    head, *rows = topics.topic_rows(moved)
    assert (head[5], [row[5] for row in rows]) == ("RECORDS/S", ["2.0", "?"])
    assert [one["recordsPerSecond"] for one in topics.as_documents(moved)] == [2.0, None]
    head, *rows = topics.partition_rows(moved)
    assert (head[7], [row[7] for row in rows]) == ("RECORDS/S", ["2.0", "36.0", "?"])
    assert [one["recordsPerSecond"] for one in topics.as_documents(FOUND)] == [None, None]


def test_resources_that_are_not_known_are_not_told_to_be_none() -> None:
    foreign = replace(FOUND, owners=None)
    assert [row[-1] for row in topics.topic_rows(foreign)] == ["RESOURCE", "?", "?"]
    assert [(one["resource"], one["hasResource"]) for one in topics.as_documents(foreign)] == [(None, None)] * 2


def test_partitions_of_a_topic_say_which_has_no_leader() -> None:
    _, _, *rows = topics.partition_rows(FOUND)
    assert rows == [
        ["orders", "0", "1", "1,2", "1", "10", "1,510", "2.0 KiB"],
        ["orders", "1", "none", "1,2", "", "?", "?", "?"],
    ]


def test_programs_read_null_where_a_cluster_did_not_tell() -> None:
    flights, orders = topics.as_documents(FOUND)
    assert (flights["records"], flights["sizeBytes"], flights["hasResource"]) == (7, 0, True)
    assert (flights["resource"], orders["resource"]) == ("topic/all-flights", None)
    assert orders["records"] is None
    assert [one["leader"] for one in orders["partitions"]] == [1, None]
    assert [one["endOffset"] for one in orders["partitions"]] == [1_510, None]


GROUPS = Groups(
    {
        "etl": Group("Stable", "Classic", (("app", "10.0.0.1"),), {("orders", 0): 1_500, ("flights", 0): 9}),
        "new": Group("Stable", "Consumer", None, {("orders", 0): 10, ("orders", 1): 0}),
    },
    FOUND.ends,
)


def test_groups_are_listed_with_their_lag() -> None:
    head, *rows = groups.group_rows(GROUPS)
    assert head == ["GROUP", "TYPE", "STATE", "MEMBERS", "TOPICS", "LAG"]
    assert rows == [
        ["etl", "Classic", "Stable", "1", "2", "10"],
        ["new", "Consumer", "Stable", "?", "1", "?"],
    ]


def test_partitions_of_a_group_say_which_end_is_not_known() -> None:
    _, *rows = groups.partition_rows(GROUPS)
    assert rows == [
        ["etl", "flights", "0", "9", "7", "0"],
        ["etl", "orders", "0", "1,500", "1,510", "10"],
        ["new", "orders", "0", "10", "1,510", "1,500"],
        ["new", "orders", "1", "0", "?", "?"],
    ]


def test_programs_read_the_lag_of_a_group() -> None:
    etl, new = groups.as_documents(GROUPS)
    assert (etl["lag"], etl["members"]) == (10, [{"clientId": "app", "host": "10.0.0.1"}])
    assert (new["lag"], new["members"]) == (None, None)
    assert (etl["share"], etl["partitions"][0]["committedOffset"]) == (None, 9)


SHARED = Groups(
    {
        "etl": GROUPS.groups["etl"],
        "mails": Group("Stable", "Share", (("app", "h"),), {("orders", 0): 100}, {("orders", 0): 30}),
        "secret": Group("Empty", "Share", None, {}),
    },
    FOUND.ends,
    {("mails", "orders"): ShareFigures(75.0, 4, 1), ("mails", "flights"): ShareFigures(0.0, 2, 0)},
)


def test_share_groups_have_the_lag_of_their_coordinator_and_what_metrics_pages_tell() -> None:
    head, *rows = groups.group_rows(SHARED)
    assert head == ["GROUP", "TYPE", "STATE", "MEMBERS", "TOPICS", "LAG", "OLDEST", "REDELIVERED", "ARCHIVED"]
    assert rows == [
        ["etl", "Classic", "Stable", "1", "2", "10", "", "", ""],
        ["mails", "Share", "Stable", "1", "1", "30", "75 s", "6", "1"],
        ["secret", "Share", "Empty", "?", "0", "?", "?", "?", "?"],
    ]


def test_partitions_of_a_share_group_have_start_offsets() -> None:
    head, *rows = groups.partition_rows(SHARED)
    assert head[3] == "COMMITTED OR START"
    assert rows[-1] == ["mails", "orders", "0", "100", "1,510", "30"]
    assert next(groups.partition_rows(Groups({"mails": SHARED.groups["mails"]}, {})))[3] == "START"


def test_programs_read_what_is_told_of_a_share_group() -> None:
    _, mails, secret = groups.as_documents(SHARED)
    assert mails["share"] == [
        {"topic": "flights", "oldestRecordSeconds": 0.0, "redelivered": 2, "archived": 0},
        {"topic": "orders", "oldestRecordSeconds": 75.0, "redelivered": 4, "archived": 1},
    ]
    assert mails["partitions"] == [
        {"topic": "orders", "partition": 0, "startOffset": 100, "endOffset": 1_510, "lag": 30}
    ]
    assert (secret["lag"], secret["members"], secret["share"]) == (None, None, [])
