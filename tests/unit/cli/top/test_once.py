"""Tables and JSON of a made-up cluster: numbers in base units, null where nothing is told."""

import json
import sys

import pytest

from kavka_cli.app import main
from kavka_operator.live_views.model import History
from kavka_operator.live_views.tables import VIEWS
from kavka_operator.web_page.sheet import SOON, UNTOLD, Cell, Column, Tone
from kavka_top import once
from tools.top_picture import Example

NAMES = list(VIEWS)
MIB = 2**20


@pytest.fixture
def history() -> History:
    return once.look_twice(Example(), 2.0, lambda _: None)


def test_rates_follow_from_two_looks_that_far_apart() -> None:
    slept: list[float] = []
    history = once.look_twice(Example(), 5.0, slept.append)
    assert (slept, len(history.looks)) == ([5.0], 2)


def test_a_document_has_the_rows_of_each_view_in_the_order_of_the_screen(history: History) -> None:
    found = json.loads(json.dumps(once.document(history, NAMES)))
    assert (found["cluster"], found["seconds"], found["untold"]) == ("production", 2.0, [])
    etl = next(row for row in found["clients"] if row["clientId"] == "etl" and row["does"] == "produce")
    assert etl["user"] == "alice"
    assert etl["limit"] == 8 * MIB
    assert etl["rate"] == pytest.approx(3 * 5_788_139.52), "that of three brokers"
    assert etl["held"] == 0
    rates = [row["rate"] for row in found["clients"] if row["rate"] is not None]
    assert rates == sorted(rates, reverse=True)
    assert "trend" not in etl
    orders = next(row for row in found["topics"] if row["topic"] == "orders")
    assert orders["recordsPerSecond"] == pytest.approx(41_000, rel=0.01)


def test_a_client_without_a_limit_has_none_and_not_zero(history: History) -> None:
    found = once.document(history, ["clients"])["clients"]
    assert isinstance(found, list)
    (web,) = (row for row in found if row["clientId"] == "web-7")
    assert web["limit"] is None


def test_what_only_a_metrics_page_tells_is_null_without_one() -> None:
    history = once.look_twice(Example(has_pages=False), 2.0, lambda _: None)
    found = once.document(history, ["topics"])["topics"]
    assert isinstance(found, list)
    assert {row["in"] for row in found} == {None}


def test_tables_name_their_view_and_only_the_ones_that_were_asked_for(history: History) -> None:
    text = "\n".join(once.tables(history, ["quotas", "nodes"]))
    assert text.startswith("QUOTAS\n")
    assert "\nNODES\n" in text
    assert "CLIENT ID" not in text
    assert "alice" in text


@pytest.mark.parametrize(
    ("column", "cell", "value"),
    [
        (Column("RATE", is_number=True), Cell("1.0 KiB/s", 1024.0), 1024.0),
        (Column("RATE", is_number=True), UNTOLD, None),
        (Column("RATE", is_number=True), SOON, None),
        (Column("LIMIT", is_number=True), Cell("none", 0.0, Tone.FAINT), None),
        (Column("LAG", is_number=True), Cell("0", 0.0, Tone.FAINT), 0.0),
        (Column("TOPIC"), Cell("a·b", "a\x1bb", Tone.NAME), "a\x1bb"),
        (Column("STATE"), Cell("in sync", "0", Tone.GOOD), "in sync"),
        (Column("RACK"), Cell("", None), None),
    ],
)
def test_a_value_is_what_the_cell_says(column: Column, cell: Cell, value: str | float | None) -> None:
    assert once.value(column, cell) == value


@pytest.mark.parametrize(
    ("title", "key"), [("CLIENT ID", "clientId"), ("LAG GROWS/S", "lagGrowsPerSecond"), ("IN", "in"), ("USED", "used")]
)
def test_a_key_is_the_title(title: str, key: str) -> None:
    assert once.key(Column(title)) == key


def test_keys_of_a_view_are_different() -> None:
    history = once.look_twice(Example(), 2.0, lambda _: None)
    for name, view in VIEWS.items():
        keys = [once.key(column) for column in view(history).columns]
        assert len(keys) == len(set(keys)), name


def test_an_installation_without_top_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "kavka_top", None)
    with pytest.raises(SystemExit, match=r"^1$"):
        main(["top", "--once", "--bootstrap", "kafka-1:9092"])
    assert "pip install 'kavka[top]'" in capsys.readouterr().err
