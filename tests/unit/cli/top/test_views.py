"""The views, from looks at a cluster: what follows from two of them, and what is not told."""

from dataclasses import replace

import pytest

from kavka_broker.core.quota.entity import DEFAULT, Entity, IpEntity
from kavka_cli.commands.top import VIEW_NAMES
from kavka_operator.domain.observed import SeenBroker, SeenPartition
from kavka_operator.domain.transactions import OpenTransaction
from kavka_operator.kafka.broker_metrics import RECEIVED, ClientFigures, ClientKey, Page, QuotaFigures, ShareFigures
from kavka_operator.kafka.offsets_and_lag import Group, LogDirs, Members
from kavka_operator.live_views.model import LOOKS_MAX, History, Look
from kavka_operator.live_views.tables import VIEWS
from kavka_operator.web_page.sheet import Sheet, Tone

ETL = ClientKey("", "etl", "produce")
PARTITIONS = (
    SeenPartition("orders", 0, 1, (1, 2), (1, 2)),
    SeenPartition("orders", 1, 2, (2, 1), (2,)),
    SeenPartition("dark", 0, None, (2,), ()),
)
MEMBERS = Members("c", {1: SeenBroker(1, "a:1", None, 1, 0), 2: SeenBroker(2, "b:2", "r", 1, 1)}, PARTITIONS)


def look(at_s: float, **told: object) -> Look:
    return replace(Look(at_s, "here", MEMBERS), **told)  # type: ignore[arg-type]


def history(*looks: Look) -> History:
    return History(looks)


def table(sheet: Sheet) -> dict[str, dict[str, str]]:
    """The texts of a sheet by the first column and the title."""
    titles = [column.title for column in sheet.columns]
    return {row.key: dict(zip(titles, (cell.text.strip() for cell in row.cells), strict=True)) for row in sheet.rows}


def page(seconds: float, rate: float = 900.0, *, limit: float | None = 1000.0, node: int = 1) -> Page:
    figures = ClientFigures(rate, limit, 7, 'client id "etl"', 0.0, 0.5 * seconds)
    quota = QuotaFigures(limit, rate, 1.0, 0.25 * seconds)
    totals = {RECEIVED: 100.0 * seconds}
    return Page(node, {ETL: figures}, {('client id "etl"', "produce"): quota}, {"orders": 50.0 * seconds}, {}, totals)


@pytest.mark.parametrize("name", VIEWS)
def test_what_nobody_tells_is_never_a_number(name: str) -> None:
    told = look(0.0, quotas={Entity(None, "etl"): {"producer_byte_rate": 5.0}})
    for row in VIEWS[name](history(told, replace(told, at_s=2.0))).rows:
        shown = dict(zip((column.title for column in VIEWS[name](history(told)).columns), row.cells, strict=True))
        for title in ("RATE", "IN", "OUT", "USED", "HELD", "SIZE", "DISK", "RECORDS/S", "CONNECTIONS", "MOST"):
            assert title not in shown or shown[title].text == "not told", (title, shown[title])


def test_a_rate_is_that_of_all_brokers_and_used_that_of_the_one_nearest_to_its_limit() -> None:
    looks = [look(at, pages={"1": page(at, 200.0), "2": page(at, 950.0, node=2)}) for at in (10.0, 12.0)]
    row = table(VIEWS["clients"](history(*looks)))["\0etl\0produce"]
    assert (row["USER"], row["RATE"], row["LIMIT"], row["USED"].split()[-2:]) == (
        "any",
        "1.1 KiB/s",
        "1000 B/s",
        ["95", "%"],
    )
    assert (row["HELD"], row["BROKERS"], row["LEVEL"]) == ("50 %", "2", "7")


def test_what_needs_two_looks_is_awaited_and_a_counter_that_began_anew_is_not_told() -> None:
    first = look(10.0, pages={"1": page(10.0)})
    assert table(VIEWS["clients"](history(first)))["\0etl\0produce"]["HELD"] == "…"
    restarted = look(12.0, pages={"1": page(1.0)})
    assert table(VIEWS["clients"](history(first, restarted)))["\0etl\0produce"]["HELD"] == "not told"


def test_a_client_without_a_limit_uses_nothing_of_it() -> None:
    row = table(VIEWS["clients"](history(look(1.0, pages={"1": page(1.0, limit=None)}))))["\0etl\0produce"]
    assert (row["LIMIT"], row["USED"], row["LEVEL"]) == ("none", "", "")


def test_of_who_is_under_no_quota_the_rate_is_what_was_counted_between_looks() -> None:
    key = ClientKey("bob", "free", "fetch")
    looks = [look(at, pages={"1": Page(1, {key: ClientFigures(bytes_total=1000.0 * at)})}) for at in (10.0, 12.0, 14.0)]
    row = table(VIEWS["clients"](history(*looks)))["bob\0free\0fetch"]
    assert (row["RATE"], row["LIMIT"], row["TREND"]) == ("1000 B/s", "none", "██")
    assert table(VIEWS["clients"](history(looks[0])))["bob\0free\0fetch"]["RATE"] == "…"


def test_other_kinds_have_their_units_and_stand_there_where_a_limit_holds() -> None:
    limited, free = ClientKey("bob", "", "request"), ClientKey("node", "", "request")
    pages = {"1": Page(1, {limited: ClientFigures(12.5, 25.0, 3, 'user "bob"'), free: ClientFigures(3.0)})}
    found = table(VIEWS["clients"](history(look(1.0, pages=pages))))
    assert list(found) == ["bob\0\0request"]
    row = found["bob\0\0request"]
    assert (row["RATE"], row["LIMIT"], row["USED"].split()[-2]) == ("12.5 %", "25 %", "50")


def test_without_pages_the_members_of_groups_are_the_clients_that_are_known() -> None:
    told = look(1.0, groups={"g": Group("Stable", "classic", (("reader", "h"), ("reader", "i")), {})})
    sheet = VIEWS["clients"](history(told))
    assert [row.cells[1].text for row in sheet.rows] == ["reader"]
    assert "--metrics" in sheet.note


def test_topics_have_rates_from_the_ends_of_their_logs_and_sizes_of_all_replicas() -> None:
    sizes = {1: LogDirs({("orders", 0): 1024}, 0.5), 2: LogDirs({("orders", 0): 1024}, None)}
    before = look(10.0, ends={("orders", 0): 10, ("orders", 1): 10}, pages={"1": page(10.0)})
    now = look(14.0, ends={("orders", 0): 50, ("orders", 1): 10}, log_dirs=sizes, pages={"1": page(14.0)})
    found = table(VIEWS["topics"](history(before, now)))
    assert (found["orders"]["RECORDS/S"], found["orders"]["RECORDS"]) == ("10", "60")
    assert (found["orders"]["IN"], found["orders"]["OUT"], found["orders"]["SIZE"]) == ("50 B/s", "not told", "2.0 KiB")
    assert (found["orders"]["STATE"], found["dark"]["STATE"]) == ("1 under-replicated", "1 offline")
    assert found["dark"]["RECORDS/S"] == "not told"  # its end is not known while nobody leads it


def test_the_lag_of_a_group_and_whether_it_grows() -> None:
    group = Group("Stable", "classic", (("reader", "h"),), {("orders", 0): 5})
    before = look(10.0, ends={("orders", 0): 10}, groups={"g": group})
    now = look(12.0, ends={("orders", 0): 35}, groups={"g": replace(group, committed={("orders", 0): 15})})
    row = table(VIEWS["groups"](history(before, now)))["g"]
    assert (row["LAG"], row["LAG GROWS/S"], row["COMMITS/S"], row["TOPICS"]) == ("20", "+8", "5", "orders")
    unknown = look(14.0, ends={}, groups={"g": replace(group, members=None)})
    row = table(VIEWS["groups"](history(before, unknown)))["g"]
    assert (row["LAG"], row["MEMBERS"]) == ("not told", "not told")


MAILS = Group("Stable", "Share", (("mailer", "h"),), {("orders", 0): 5}, {("orders", 0): 3, ("orders", 1): None})


def test_the_lag_of_a_share_group_is_what_its_coordinator_counts() -> None:
    whole = replace(MAILS, lags={("orders", 0): 3, ("orders", 1): 4})
    looks = [look(at, groups={"mails": whole}, ends={("orders", 0): 900, ("orders", 1): 900}) for at in (10.0, 12.0)]
    assert table(VIEWS["groups"](history(*looks)))["mails"]["LAG"] == "7"
    assert table(VIEWS["shares"](history(*looks)))["mails\0orders"]["LAG"] == "7"
    partly = look(14.0, groups={"mails": MAILS}, ends={})
    assert table(VIEWS["groups"](history(partly)))["mails"]["LAG"] == "not told", "a part is not the whole"
    empty = look(14.0, groups={"mails": MAILS}, ends={("orders", 1): 0})
    assert table(VIEWS["shares"](history(empty)))["mails\0orders"]["LAG"] == "3", "where no record ever was none waits"
    refused = look(14.0, groups={"mails": Group("Stable", "share", None, {})}, ends={})
    assert table(VIEWS["groups"](history(refused)))["mails"]["LAG"] == "not told", "it is not 0"


def test_a_share_group_has_a_row_for_each_topic_with_what_pages_tell() -> None:
    def pages(redelivered: float) -> dict[str, Page]:
        figures = ShareFigures(75.0, redelivered, 2.0)
        return {
            "1": Page(1, shares={("mails", "orders"): figures, ("new", "clicks"): ShareFigures(2.0, 0.0, 0.0)}),
            "2": Page(2, shares={("mails", "orders"): replace(figures, oldest_seconds=5.0, archived=1.0)}),
        }

    looks = [look(at, pages=pages(count), groups={"mails": MAILS}) for at, count in ((10.0, 4.0), (12.0, 8.0))]
    found = table(VIEWS["shares"](history(*looks)))
    row = found["mails\0orders"]
    assert (row["STATE"], row["MEMBERS"], row["LAG"]) == ("Stable", "1", "not told")
    assert (row["OLDEST"], row["REDELIVERED/S"], row["ARCHIVED"]) == ("75 s", "4", "3")
    assert (found["new\0clicks"]["STATE"], found["new\0clicks"]["OLDEST"]) == ("not told", "2 s")
    assert table(VIEWS["shares"](history(looks[0])))["mails\0orders"]["REDELIVERED/S"] == "…"
    assert VIEWS["shares"](history(looks[0])).note == ""


def test_without_pages_a_share_group_has_its_lag_and_the_rest_is_not_told() -> None:
    told = look(
        10.0,
        groups={
            "mails": replace(MAILS, lags={("orders", 0): 2, ("orders", 1): 2}),
            "new": Group("Empty", "share", (), {}, {}),
        },
    )
    sheet = VIEWS["shares"](history(told))
    found = table(sheet)
    assert list(found) == ["mails\0orders", "new\0"]
    assert [found["mails\0orders"][title] for title in ("LAG", "OLDEST", "REDELIVERED/S", "ARCHIVED")] == [
        "4",
        "not told",
        "not told",
        "not told",
    ]
    assert "--metrics" in sheet.note
    assert VIEWS["shares"](history(look(1.0, groups={}))).note == "", "there is nothing to ask for"
    assert VIEWS["shares"](history(look(1.0))).note == "this cluster does not tell its groups"


def test_limits_by_keys_of_kavka_have_the_unit_of_the_key_that_they_are_about() -> None:
    values = {"kavka_prefix": 1.0, "kavka_share_2_producer_byte_rate": 1048576.0, "kavka_override_until_ms": 9.0}
    sheet = VIEWS["quotas"](history(look(1.0, quotas={Entity(None, "etl"): values})))
    assert [[cell.text for cell in row.cells[2:4]] for row in sheet.rows] == [
        ["share 2 producer byte rate", "1.0 MiB/s"]
    ]


def test_a_quota_that_others_hide_says_by_which() -> None:
    quotas = {
        Entity(None, "etl"): {
            "producer_byte_rate": 1000.0,
            "kavka_override_until_ms": 1.7e12,
            "kavka_observed_consumer_byte_rate": 9.0,
        },
        Entity(DEFAULT, None): {"producer_byte_rate": 2.0**20},
        IpEntity("10.0.0.1"): {"connection_creation_rate": 7.0},
    }
    looks = [look(at, quotas=quotas, pages={"1": page(at, 900.0)}) for at in (10.0, 12.0)]
    sheet = VIEWS["quotas"](history(*looks))
    found = table(sheet)
    etl = found["client-id=etl\0producer_byte_rate"]
    assert (etl["HIDDEN BY"], etl["MOST"], etl["HELD"], etl["CLIENTS"]) == ("user=<default>", "900 B/s", "25 %", "1")
    assert found["user=<default>\0producer_byte_rate"]["HIDDEN BY"] == ""
    ip = found["ip=10.0.0.1\0connection_creation_rate"]
    assert (ip["LEVEL"], ip["LIMIT"], ip["USED"]) == ("", "7/s", "not told")
    assert len(found) == 4, "a moment is no limit"
    assert found["client-id=etl\0kavka_observed_consumer_byte_rate"]["LIMITS"] == "observed consumer byte rate"
    assert "does not tell" in VIEWS["quotas"](history(look(1.0))).note


def test_nodes_with_their_traffic_disks_and_controller() -> None:
    looks = [look(at, pages={"1": page(at)}, controller=2, log_dirs={1: LogDirs({}, 0.85)}) for at in (10.0, 12.0)]
    sheet = VIEWS["nodes"](history(*looks))
    found = table(sheet)
    assert (found["1"]["IN"], found["1"]["OUT"], found["1"]["DISK"].split()[-2]) == ("100 B/s", "not told", "85")
    assert (found["1"]["ROLE"], found["2"]["ROLE"], found["2"]["IN"]) == ("", "controller", "not told")
    assert sheet.rows[1].cells[6].tone is Tone.BAD  # it leads a partition with replicas behind
    assert table(VIEWS["nodes"](history(look(1.0))))["1"]["ROLE"] == "not told"


def test_a_transaction_says_how_far_it_holds_readers_back_and_which_coordinator_ends_it() -> None:
    keys = ("orders", 0), ("orders", 1)
    open_one = OpenTransaction("settle", 4, "Ongoing", 2, 90.0, 60.0, frozenset(keys), {keys[0]: 7, keys[1]: 12_000})
    lost = OpenTransaction(None, 9, None, None, 7300.0, None, frozenset(keys[:1]), {keys[0]: 3})
    sheet = VIEWS["transactions"](history(look(1.0, transactions=[open_one, lost])))
    found = table(sheet)
    assert found["settle\0004"] == {
        "TRANSACTIONAL ID": "settle",
        "STATE": "Ongoing",
        "OPEN": "90 s",
        "TIMEOUT": "60 s",
        "PARTITIONS": "2",
        "HELD BACK": "12.0k",
        "WHERE": "orders-1",
        "COORDINATOR": "2",
        "PRODUCER": "4",
    }
    assert sheet.rows[0].cells[2].tone is Tone.BAD, "its coordinator should have aborted it"
    assert (found["\0009"]["COORDINATOR"], found["\0009"]["OPEN"]) == ("none knows it", "2.0 h")
    assert VIEWS["transactions"](history(look(1.0))).note == "this cluster does not tell its transactions"


def test_the_command_offers_the_views_of_the_screen() -> None:
    assert tuple(VIEWS) == VIEW_NAMES


def test_the_history_ends_somewhere() -> None:
    looks: History | None = None
    for at in range(3 * LOOKS_MAX):
        looks = History.after(looks, look(float(at)))
    assert looks is not None
    assert len(looks.looks) == LOOKS_MAX
    assert looks.now.at_s == 3 * LOOKS_MAX - 1


def test_a_budget_of_the_whole_cluster_is_held_against_what_all_brokers_let_through() -> None:
    values = {
        "producer_byte_rate": 1000.0,
        "kavka_cluster_producer_byte_rate": 3000.0,
        "kavka_share_1_producer_byte_rate": 2000.0,
        "kavka_share_2_producer_byte_rate": 1000.0,
    }
    pages = {"1": page(1.0, 2000.0, limit=2000.0), "2": page(1.0, 400.0, limit=1000.0, node=2)}
    (row,) = table(VIEWS["quotas"](history(look(1.0, quotas={Entity(None, "etl"): values}, pages=pages)))).values()
    assert (row["LIMITS"], row["LIMIT"], row["MOST"]) == ("produce, cluster", "2.9 KiB/s", "2.3 KiB/s")
    assert row["USED"].split()[-2:] == ["80", "%"]


def test_a_limit_of_a_topic_stands_among_quotas_though_only_pages_tell_of_it() -> None:
    apart = 'each partition of topic "orders"'
    figures = {node: QuotaFigures(1000.0, usage, 1.0, 0.0) for node, usage in (("1", 250.0), ("2", 500.0))}
    pages = {node: Page(int(node), quotas={(apart, "fetch"): quota}) for node, quota in figures.items()}
    pages["1"].quotas['user "topic"', "fetch"] = QuotaFigures(5.0)
    rows = table(VIEWS["quotas"](history(look(1.0, quotas={}, pages=pages))))
    assert list(rows) == [f"{apart}\0fetch"]
    row = rows[f"{apart}\0fetch"]
    assert (row["LIMITS"], row["LIMIT"], row["MOST"], row["USED"].split()[-2:]) == (
        "fetch",
        "1000 B/s",
        "500 B/s",
        ["50", "%"],
    )


def test_a_limit_that_is_observed_shows_what_it_would_be_and_a_prefix_has_its_star() -> None:
    values = {"kavka_observed_producer_byte_rate": 1000.0, "kavka_prefix": 1.0}
    entity = 'client id that begins with "etl-"'

    def pages(seconds: float) -> dict[str, Page]:
        quota = QuotaFigures(observed_limit=1000.0, observed_usage=1500.0, observed_seconds=0.25 * seconds)
        return {"1": Page(1, quotas={(entity, "produce"): quota})}

    looks = [look(at, quotas={Entity(None, "etl-"): values}, pages=pages(at)) for at in (10.0, 12.0)]
    row = table(VIEWS["quotas"](history(*looks)))["client-id=etl-*\0kavka_observed_producer_byte_rate"]
    assert (row["LIMIT"], row["MOST"], row["USED"].split()[-2], row["HELD"]) == ("1000 B/s", "1.5 KiB/s", "150", "25 %")


def test_a_quota_holds_somebody_for_no_more_than_all_of_the_time() -> None:
    """Pages are read a moment before or after the look is dated."""
    looks = [look(at, quotas={Entity(None, "etl"): {"producer_byte_rate": 1.0}}, pages=read) for at, read in (
        (10.0, {"1": page(10.0)}), (10.2, {"1": page(12.0)}))]  # fmt: skip
    (row,) = table(VIEWS["quotas"](history(*looks))).values()
    assert row["HELD"] == "100 %"
