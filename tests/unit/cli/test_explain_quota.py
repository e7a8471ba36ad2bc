"""Which quota holds, and why others do not: the explanation, and the words for it."""

import pytest

from kavka_broker.core.quota.entity import DEFAULT, Entity, IpEntity
from kavka_broker.core.quota.entity_limits import share_key
from kavka_cli.commands.explain.quota import Told, of_address, of_client
from kavka_cli.target import Target
from kavka_cli.topic_limits import of_topic
from kavka_operator.api.quota import AnyEntity
from kavka_operator.kafka.broker_metrics import ClientFigures, ClientKey, Page, QuotaFigures
from kavka_operator.quota.explanation import explain, explain_address, unlimited
from tests.unit.cli.test_recommend import quota
from tests.unit.operator.person import run

ETL, USERS, ALICE = Entity(None, "etl"), Entity(DEFAULT), Entity("alice")
NOW_MS = 1_000_000
PRODUCE = "producer_byte_rate"


def test_the_winner_holds_and_the_others_say_why_they_do_not() -> None:
    (only,) = explain({ETL: {PRODUCE: 1.0}, USERS: {PRODUCE: 2.0}}, "alice", "etl", NOW_MS, 0)
    assert (only.winner.entity, only.winner.limit, only.hidden) == (USERS, 2.0, (ETL,))
    assert [choice.why for choice in only.choices] == [*["not set"] * 5, "holds", "hidden by level 6", "not set"]
    assert unlimited([only]) == ["consumer_byte_rate", "controller_mutation_rate", "request_percentage"]


def test_an_override_holds_for_its_time_and_what_is_observed_holds_nobody() -> None:
    limits: dict[AnyEntity, dict[str, float]] = {
        ETL: {
            PRODUCE: 1.0,
            "kavka_override_producer_byte_rate": 5.0,
            "kavka_override_until_ms": NOW_MS + 1.0,
            "kavka_observed_consumer_byte_rate": 7.0,
        }
    }
    during, watched = explain(limits, "alice", "etl", NOW_MS, 0)
    after, _ = explain(limits, "alice", "etl", NOW_MS + 1, 0)
    assert (during.winner.limit, after.winner.limit) == (5.0, 1.0)
    assert (watched.key, watched.is_observed, watched.winner.why) == ("consumer_byte_rate", True, "is observed")
    assert "consumer_byte_rate" in unlimited([during, watched])


@pytest.mark.parametrize(
    ("limits", "whys"),
    [
        ({IpEntity("10.0.0.1"): 5.0, IpEntity(DEFAULT): 5.0}, ["holds", "hidden by the address"]),
        ({IpEntity(DEFAULT): 0.0}, ["not set", "holds"]),
        ({IpEntity("10.0.0.2"): 5.0}, None),
    ],
)
def test_an_address_has_its_own_limit_or_the_default(limits: dict[AnyEntity, float], whys: list[str] | None) -> None:
    rates = {entity: {"connection_creation_rate": limit} for entity, limit in limits.items()}
    found = explain_address(rates, "10.0.0.1", NOW_MS, 0)
    assert (found and [choice.why for choice in found.choices]) == whys


def test_an_address_may_be_written_in_another_way_than_the_kernels() -> None:
    written = IpEntity("2001:DB8:0::7")
    told = Told({written: {"connection_creation_rate": 5.0}}, (0,), {})
    target = Target("here", "a:1", owners={written: quota("seven", "alice", "Enforce")})
    lines = list(of_address(target, told, "2001:db8:0:0::7", NOW_MS))
    assert "seven" in "".join(lines)
    assert lines == [lines[0], *list(of_address(target, told, "2001:db8::7", NOW_MS))[1:]]


def test_quotas_of_hosts_are_told_since_brokers_alone_know_their_addresses() -> None:
    told = Told({IpEntity("a.example"): {"connection_creation_rate": 5.0}}, (0,), {})
    lines = list(of_address(Target("here", "a:1"), told, "10.0.0.1", NOW_MS))
    assert lines[-1] == '  otherwise, if it is of the host "a.example": connection_creation_rate 5'


def test_the_name_of_a_host_is_no_address() -> None:
    assert run("explain", "quota", "--ip", "localhost") == (
        1,
        'error: --ip "localhost" is not an address; write one as 10.0.0.1 or 2001:db8::1\n',
    )


def words(target: Target, pages: dict[str, Page], limits: dict[AnyEntity, dict[str, float]]) -> list[str]:
    told = Told(limits, (0, 1), pages)
    return "\n".join(of_client(target, told, "alice", "etl", NOW_MS)).splitlines()


def test_each_broker_tells_its_limit_and_what_the_client_uses_of_it() -> None:
    pages = {
        "0": Page(0, {ClientKey("alice", "", "produce"): ClientFigures(1024.0, 2048.0, 3, "", None, 12.4)}),
        "1": Page(1, {ClientKey("alice", "etl", "produce"): ClientFigures(9.0)}),  # another who counts by both
    }
    target = Target("here", "a:1", ("http://a", "http://b", "http://c"), {ALICE: quota("of-alice", "alice", "Enforce")})
    lines = words(target, pages, {ALICE: {PRODUCE: 2048.0}})
    assert lines[:3] == [
        'user "alice", client id "etl", on each broker of here:',
        "",
        "producer_byte_rate 2Ki: level 3, user",
    ]
    assert lines[6].split() == ["->", "3", "user", "user=alice", "2Ki", "of-alice", "holds"]
    assert [line.split() for line in lines[13:16]] == [
        ["BROKER", "LIMIT", "USES", "USED", "HELD"],
        ["0", "2Ki", "1.0", "KiB/s", "50%", "12s"],
        ["1", "2Ki", "not", "seen"],
    ]
    assert lines[-1] == "no limit: consumer_byte_rate, controller_mutation_rate, request_percentage"


def test_without_metrics_pages_usage_is_not_told_and_nothing_is_no_limit() -> None:
    target = Target("here", "a:1")
    assert any("name the brokers' metrics pages" in line for line in words(target, {}, {ALICE: {PRODUCE: 1.0}}))
    assert words(target, {}, {Entity("bob"): {PRODUCE: 1.0}})[1:] == ["  nothing limits this client"]
    assert list(of_address(target, Told({}, (0,), {}), "10.0.0.1", NOW_MS))[1:] == ["  nothing limits this address"]


def test_each_broker_has_its_share_of_a_budget() -> None:
    limits: dict[AnyEntity, dict[str, float]] = {
        ALICE: {
            "kavka_cluster_producer_byte_rate": 3000.0,
            share_key(0, PRODUCE): 1000.0,
            share_key(1, PRODUCE): 2000.0,
        }
    }
    lines = words(Target("here", "a:1"), {}, limits)
    assert [line.split()[:2] for line in lines[14:16]] == [["0", "1k"], ["1", "2k"]]


def test_a_prefix_stands_behind_the_whole_name_and_counts_its_clients_together() -> None:
    limits: dict[AnyEntity, dict[str, float]] = {
        Entity(None, "et"): {PRODUCE: 5.0, "kavka_prefix": 1.0},
        Entity(None, "e"): {PRODUCE: 6.0, "kavka_prefix": 1.0},
        Entity(None, DEFAULT): {PRODUCE: 7.0},
    }
    (found,) = explain(limits, "alice", "etl", NOW_MS, 0)
    assert [(choice.limit, choice.why) for choice in found.choices[6:]] == [
        (None, "not set"),
        (5.0, "holds"),
        (6.0, "hidden by level 7"),
        (7.0, "hidden by level 7"),
    ]
    assert found.winner.level == "7 client id, by prefix"
    owned = Target("here", "a:1", owners={Entity(None, "et"): quota("etl", "alice", "Enforce")})
    assert [line.split()[-2:] for line in words(owned, {}, limits) if "->" in line] == [["etl", "holds"]]
    page = Page(0, {ClientKey("", "et*", "produce"): ClientFigures(2.0, 5.0, 7)})
    assert any(
        line.split()[:3] == ["0", "5", "2"] for line in words(Target("here", "a:1", ("u",)), {"0": page}, limits)
    )


def test_a_callback_that_decides_instead_is_named() -> None:
    told = Told({ALICE: {PRODUCE: 1.0}}, (0, 1, 2), {}, {0: "tenants:Quotas", 2: "tenants:Quotas"})
    last = list(of_client(Target("here", "a:1"), told, "alice", "etl", NOW_MS))[-1]
    assert last.startswith("\nnot so on broker 0, 2: there client.quota.callback.class=tenants:Quotas decides")
    alone = list(of_client(Target("here", "a:1"), Told({}, (0,), {}), "alice", "etl", NOW_MS))
    assert not any("callback" in line for line in alone)


def test_a_topic_tells_its_limits_and_what_each_broker_lets_through() -> None:
    limits = {"kavka.partition.producer.byte.rate": 2048, "kavka.topic.consumer.byte.rate": 1000}
    quotas = {
        ('each partition of topic "orders"', "produce"): QuotaFigures(2048.0, 1024.0, 3.0, 12.4),
        ('topic "orders"', "produce"): QuotaFigures(1.0, 1.0, 1.0, 1.0),
    }
    lines = "\n".join(of_topic("orders", "here", limits, {"0": Page(0, quotas=quotas), "1": Page(1)})).splitlines()
    assert lines[2] == "kavka.partition.producer.byte.rate 2Ki: produce, each partition"
    assert [line.split() for line in lines[4:6]] == [["0", "1.0", "KiB/s", "50%", "12s"], ["1", "not", "led", "here"]]
    assert lines[7].endswith("1k: fetch, all partitions that a broker leads, together")
    assert list(of_topic("orders", "here", limits, {}))[-1].endswith("with --metrics")
    assert "nothing limits this topic" in list(of_topic("orders", "here", {}, {}))[-1]
