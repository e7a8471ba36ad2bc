"""What the page shows of a made-up cluster: facts and sheets, links, and `unknown` where nothing is told."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from kavka_operator.domain.access_rules import Binding
from kavka_operator.live_views import sheets
from kavka_operator.live_views.model import History
from kavka_operator.live_views.tables import VIEWS
from kavka_operator.live_views.views import TITLES, cluster_view, clusters_view
from kavka_operator.web_page import documents
from kavka_operator.web_page.documents import sheet_document, title_of
from kavka_operator.web_page.sheet import Cell, Column, Row, Sheet
from tools.top_picture import look

NAME = "shop/main"


@pytest.fixture
def history() -> History:
    return History((look(1), look(2)))


@pytest.fixture
def untold() -> History:
    return History((look(1, has_pages=False), look(2, has_pages=False)))


def cells(sheet: dict[str, Any], key: str) -> dict[str, str]:
    (row,) = (row for row in sheet["rows"] if row["key"] == key)
    titles = [column["title"] for column in sheet["columns"]]
    return {title: cell["text"] for title, cell in zip(titles, row["cells"], strict=True)}


def facts(shown: dict[str, Any]) -> dict[str, str]:
    return {fact["name"]: fact["text"] for fact in shown["facts"]}


def test_every_cluster_is_a_row_also_one_that_does_not_answer(history: History) -> None:
    found: sheets.Histories = {
        NAME: ("b:9092", history, ""),
        "old": ("o:9092", history, "no broker answers"),
        "new": ("n:9092", None, ""),
        "away": ("a:9092", None, "no broker answers"),
    }
    (sheet,) = clusters_view(found)["sheets"]
    main = cells(sheet, NAME)
    assert (main["Brokers"], main["Topics"], main["Partitions"], main["Groups"]) == ("3", "4", "92", "4")
    assert (main["State"], main["Under-replicated"], main["Offline"]) == ("under-replicated", "3", "0")
    assert main["Records/s"] == "264k"
    assert [cells(sheet, name)["State"] for name in ("old", "new", "away")] == [
        "does not answer",
        "…",
        "does not answer",
    ]
    assert cells(sheet, "away")["Topics"] == "unknown"
    assert {row["key"]: row["link"] for row in sheet["rows"]}[NAME] == [NAME, "topics"]


def test_each_view_is_that_of_kavka_top_in_words_of_a_page(history: History) -> None:
    assert list(TITLES) == ["topics", "groups", "shares", "clients", "quotas", "nodes", "transactions"]
    assert set(TITLES) == set(VIEWS)
    for view in VIEWS:
        shown = json.loads(json.dumps(cluster_view(history, NAME, view, None), allow_nan=False))
        (sheet,) = shown["sheets"]
        assert sheet["rows"], view
        assert facts(shown)["Brokers"] == "3"
    clients = cluster_view(history, NAME, "clients", None)["sheets"][0]
    etl = cells(clients, "alice\0etl\0produce")
    assert (etl["Operation"], etl["Limit per broker"], etl["Throttled"]) == ("produce", "8.0 MiB/s", "0 %")
    assert "█" not in etl["Used"], "the page draws the bar"
    (row,) = (row for row in clients["rows"] if row["key"] == "alice\0etl\0produce")
    assert row["link"] == [NAME, "clients", "alice", "etl"]


def test_what_a_cluster_does_not_tell_is_unknown_and_never_nothing(untold: History) -> None:
    topics = cluster_view(untold, NAME, "topics", None)
    assert cells(topics["sheets"][0], "orders")["In"] == "unknown"
    assert "Kafka's API does not tell" in topics["sheets"][0]["note"]
    assert facts(topics)["Bytes in"] == "unknown"
    assert facts(cluster_view(untold, NAME, "topics", "orders"))["Bytes in"] == "unknown"


def test_a_topic_has_its_partitions_and_the_groups_that_read_it(history: History) -> None:
    shown = cluster_view(history, NAME, "topics", "payments")
    partitions, readers = shown["sheets"]
    assert shown["partitions"] == [0, 1, 2, 3, 4, 5]
    assert facts(shown)["Partitions"] == "6"
    assert cells(partitions, "1") | {"Size": ""} == {
        "Partition": "1", "Leader": "1", "Replicas": "0, 1, 2", "In sync": "0, 1, 2", "End": "2,066",
        "Records/s": "516", "Size": "", "State": "in sync",
    }  # fmt: skip
    assert cells(readers, "billing") == {"Group": "billing", "State": "Stable", "Members": "3", "Lag": "0"}
    assert [row["link"] for row in readers["rows"]] == [[NAME, "groups", name] for name in ("emails", "billing")]
    assert cells(readers, "emails")["Lag"] == "360", "the coordinator of a share group counts it"


def test_a_group_has_its_offsets_and_members(history: History) -> None:
    shown = cluster_view(history, NAME, "groups", "lake")
    offsets, members = shown["sheets"]
    assert facts(shown)["State"] == "Stable"
    assert cells(offsets, "clicks\x00000003")["Lag"] == "575"
    assert cells(offsets, "clicks\x00000003")["Lag grows/s"] == "+50"
    assert [cells(members, row["key"])["Client id"] for row in members["rows"]] == ["lake-writer"]


def test_what_was_not_told_this_time_is_not_gone(history: History) -> None:
    now = history.now
    untold = History((history.looks[0], replace(now, groups=None, ends=None)))
    shown = cluster_view(untold, NAME, "groups", "lake")
    assert [sheet["note"] for sheet in shown["sheets"]] == ["this cluster does not tell its groups"]
    assert cluster_view(untold, NAME, "topics", "orders")["end"] is None
    some = replace(now, ends={("orders", 0): 7})
    assert cluster_view(History((some,)), NAME, "topics", "orders")["end"] is None


def test_a_client_has_the_rows_of_both_operations(history: History) -> None:
    (sheet,) = cluster_view(history, NAME, "clients", "alice\0etl")["sheets"]
    assert {row["cells"][2]["text"] for row in sheet["rows"]} == {"produce", "fetch"}
    assert not cluster_view(history, NAME, "clients", "nobody\0none")["sheets"][0]["rows"]


@pytest.mark.parametrize(
    ("view", "item"), [("topics", "none"), ("groups", "none"), ("quotas", "x"), ("else", None), ("access", None)]
)
def test_what_is_not_there_is_a_lookup_error(history: History, view: str, item: str | None) -> None:
    with pytest.raises(LookupError):
        cluster_view(history, NAME, view, item)


def test_users_are_those_with_passwords_and_those_of_rules() -> None:
    rule = Binding("Deny", "Read", "Topic", "Literal", "*", "orders")
    rules = {"User:bob": frozenset({rule}), "User:*": frozenset({rule}), "Group:x": frozenset({rule})}
    found = sheet_document(sheets.users({"alice": {"SCRAM-SHA-512": 4096}}, rules), "Users")
    assert {row["key"]: cells(found, row["key"]) for row in found["rows"]} == {
        "alice": {"User": "alice", "Mechanisms": "SCRAM-SHA-512", "ACLs": "0"},
        "bob": {"User": "bob", "Mechanisms": "no SCRAM credential", "ACLs": "1"},
    }
    shown = sheet_document(sheets.access_rules(rules), "Rules")
    assert len(shown["rows"]) == 3
    assert shown["rows"][0]["cells"][1] == {"text": "Deny", "order": "deny", "tone": "bad"}
    assert "no authorizer" in sheets.access_rules(None).note


def test_rows_and_texts_are_bounded_and_no_number_breaks_the_document() -> None:
    columns = (Column("NAME"), Column("RATE", is_number=True))
    rows = tuple(Row(str(at), (Cell("x" * 9999, str(at)), Cell("odd", math.nan))) for at in range(5))
    found = json.loads(json.dumps(sheet_document(Sheet("s", columns, rows, 0), "S", rows_max=3), allow_nan=False))
    assert (len(found["rows"]), found["omitted"]) == (3, 2)
    assert len(found["rows"][0]["cells"][0]["text"]) == documents.TEXT_CHARACTERS_MAX
    assert found["rows"][0]["cells"][1]["order"] is None


@pytest.mark.parametrize(("title", "words"), [("LAG GROWS/S", "Lag grows/s"), ("BEHIND", "Under-replicated")])
def test_titles_are_words(title: str, words: str) -> None:
    assert title_of(title) == words
