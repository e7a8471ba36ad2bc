"""The trail gets into the lake once, whatever a record holds and wherever a run dies."""

import base64
import json
from pathlib import Path

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kavka_audit.lake.columns import ENTRIES
from kavka_audit.lake.directory import Lake, LakeError
from kavka_audit.lake.ingest import Ingested, ingest
from kavka_audit.lake.rows import VALUE_BYTES_MAX, row_of
from kavka_broker.core.audit.changes import Change
from kavka_broker.core.audit.cloud_events import headers_of
from kavka_broker.core.audit.events import Changed, Denied, Happening, LoggedIn
from kavka_broker.core.audit.usage import Throttling, Use
from tests.unit.analytics.trail import CLUSTER, NOW_MS, At, Kept, Record, chain_of, taken_in

USE = Use("User:alice", "10.0.0.1", "app", "WRITE", "orders", 100, 3)


def rows(lake: Lake) -> list[tuple[int, int, str]]:
    found = duckdb.read_parquet(lake.files()).project('partition, "offset", kind')
    return sorted(found.fetchall())


def kept(count: int) -> Kept:
    trail = Kept()
    trail.write(0, chain_of(1, [At(USE)] * count)[1])
    return trail


def test_each_kind_of_event_has_its_columns() -> None:
    happenings: list[Happening] = [
        USE,
        Use("User:alice", "10.0.0.1", "app", "READ", "orders", 100, None),
        Throttling("User:alice", "10.0.0.1", "app", "produce", '{"user": "alice"}', 1024.5, 500, 300),
        Denied("User:bob", "10.0.0.1", "WRITE", "topic", "orders"),
        LoggedIn(None, "10.0.0.1", "EXTERNAL"),
        LoggedIn("alice", "10.0.0.1", "EXTERNAL"),
        Changed("User:alice", "::1", "admin", Change("ALTER_CONFIGS", "topic", "orders", "retention.ms", "9", "8")),
    ]
    entries = chain_of(1, [At(happening, times=2) for happening in happenings])[1]
    found = [row_of(Record(0, place, headers_of(entry), entry.value)) for place, entry in enumerate(entries)]
    assert all(row.keys() <= ENTRIES.keys() for row in found)
    assert [row["kind"] for row in found] == ["head", *["event"] * len(happenings)]
    write, read, throttled, denied, failed, logged_in, changed = found[1:]
    assert (write["bytes"], write["records"], read["records"], write["times"]) == (100, 3, None, 2)
    assert (throttled["outcome"], throttled["quota_limit"], throttled["resource"]) == ("delayed", 1024.5, "user=alice")
    assert throttled["quota_entity"] == '{"user":"alice"}'
    assert (denied["outcome"], denied["principal"], denied["client_id"]) == ("denied", "User:bob", None)
    assert (failed["outcome"], failed["principal"], failed["resource"]) == ("denied", None, "EXTERNAL")
    assert (logged_in["outcome"], logged_in["principal"]) == ("allowed", "User:alice")
    assert (changed["config_key"], changed["config_value"], changed["config_previous"]) == ("retention.ms", "9", "8")


EVENT = json.loads(chain_of(1, [At(USE)])[1][1].value)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"{", "schema"),
        (b"[" * 100_000, "schema"),
        (b"{}\xff", "schema"),
        (b"3", "schema"),
        (b"x" * (VALUE_BYTES_MAX + 1), "bytes"),
        (json.dumps(EVENT | {"count": -1}).encode(), "count"),
        (json.dumps(EVENT | {"count": 2**70}).encode(), "schema"),
        (json.dumps(EVENT | {"class_uid": 2**31}).encode(), "class_uid"),
        (json.dumps(EVENT | {"end_time": NOW_MS * 2}).encode(), "end_time"),
        (json.dumps(EVENT | {"actor": 3}).encode(), "schema"),
        (json.dumps({**EVENT, "api": {}}).encode(), "operation"),
        (json.dumps(EVENT | {"unmapped": {"kafka": {"bytes": "many"}}}).encode(), "schema"),
        (json.dumps(EVENT | {"unmapped": {"kafka": {"quota_limit": float("nan")}}}).encode(), "quota_limit"),
        (json.dumps(EVENT | {"unmapped": {"kafka": {"quota_entity": "user=a"}}}).encode(), "quota_entity"),
        (json.dumps(EVENT | {"unmapped": {"kafka": {"quota_limit": 10**400}}}).encode(), "quota_limit"),
    ],
)
def test_a_malformed_event_is_dead_with_the_reason(value: bytes, words: str) -> None:
    entry = chain_of(1, [At(USE)])[1][1]
    row = row_of(Record(0, 7, headers_of(entry), value))
    assert (row["kind"], row["partition"], row["offset"]) == ("dead", 0, 7)
    assert words in str(row["problem"])


@given(
    st.binary(max_size=200), st.lists(st.tuples(st.text(max_size=20), st.none() | st.binary(max_size=20)), max_size=4)
)
def test_no_record_stops_a_run(value: bytes, headers: list[tuple[str, bytes | None]]) -> None:
    entry = chain_of(1, [At(USE)])[1][1]
    assert row_of(Record(0, 0, headers, value))["kind"] == "dead"
    assert row_of(Record(0, 0, headers_of(entry), value))["kind"] == "dead"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(EVENT)), inner, max_size=3),
)


@settings(max_examples=300, deadline=None)
@given(JSON | st.fixed_dictionaries({}, optional=dict.fromkeys(sorted(EVENT), JSON)))
@example({"unmapped": True})
@example({"resources": []})
@example({"resources": [3]})
@example({"actor": {"user": None}})
def test_no_json_stops_a_run(value: object) -> None:
    entry = chain_of(1, [At(USE)])[1][1]
    event = EVENT | value if isinstance(value, dict) else value
    row = row_of(Record(0, 0, headers_of(entry), json.dumps(event).encode()))
    assert row["kind"] in ("dead", "event")


def test_a_dead_record_is_kept_as_it_stood(tmp_path: Path) -> None:
    trail = kept(0)
    entry = chain_of(1, [At(USE)])[1][1]
    value = bytes(range(256)) + b"\\x00"
    trail.add(0, headers_of(entry), value)
    trail.add(0, [("ce_type", None), ("ce_type", b"\xff")], None)
    found = duckdb.read_parquet(taken_in(tmp_path, trail)[0].files()).order('"offset"')
    (_, first, second) = found.project("kind, record_headers, record_value").fetchall()
    headers = [(header["key"], base64.b64decode(header["value"])) for header in json.loads(first[1])]
    assert (first[0], headers, first[2]) == ("dead", headers_of(entry), value)
    assert second == ("dead", '[{"key":"ce_type"},{"key":"ce_type","value":"/w=="}]', None)


def test_the_value_of_an_event_in_another_version_is_kept() -> None:
    entry = chain_of(1, [At(USE)])[1][1]
    later = json.dumps(EVENT | {"metadata": {"version": "9.0.0"}, "more": [1]}).encode()
    of_later, of_now = (row_of(Record(0, 0, headers_of(entry), value)) for value in (later, entry.value))
    assert of_later == of_now | {"record_value": later}
    assert "record_value" not in of_now


def test_half_a_character_is_written(tmp_path: Path) -> None:
    trail = kept(1)
    entry = chain_of(1, [At(USE)])[1][1]
    odd = EVENT | {"resources": [{"type": "topic", "name": "\ud800 and \0"}]}
    trail.add(0, headers_of(entry), json.dumps(odd).encode())
    lake, _ = taken_in(tmp_path, trail)
    assert duckdb.read_parquet(lake.files()).order('"offset"').project("resource").fetchall()[-1] == ("? and \0",)


def test_a_second_run_takes_in_what_is_new(tmp_path: Path) -> None:
    trail = kept(3)
    lake, first = taken_in(tmp_path, trail)
    assert first.records == 4
    assert taken_in(tmp_path, trail)[1].records == 0
    trail.write(0, chain_of(1, [At(USE)], epoch=2)[1])
    assert taken_in(tmp_path, trail)[1].records == 2
    assert [place for _, place, _ in rows(lake)] == list(range(6))


def test_records_deleted_before_they_were_read_are_counted(tmp_path: Path) -> None:
    trail = kept(5)
    trail.begins[0] = 4
    lake, found = taken_in(tmp_path, trail)
    assert (found.records, found.missed) == (2, 4)
    assert rows(lake) == [(0, 0, "missed"), (0, 4, "event"), (0, 5, "event")]
    assert taken_in(tmp_path, trail)[1].missed == 0


def test_records_deleted_while_they_are_read_are_counted(tmp_path: Path) -> None:
    trail = kept(7)
    trail.cuts[0] = (2, 5)
    lake, found = taken_in(tmp_path, trail)
    assert (found.records, found.missed) == (5, 3)
    assert rows(lake) == [
        (0, 0, "head"),
        (0, 1, "event"),
        (0, 2, "missed"),
        *((0, offset, "event") for offset in (5, 6, 7)),
    ]
    assert taken_in(tmp_path, trail)[1].missed == 0


def test_a_partition_of_which_all_is_deleted_while_it_is_read_is_missed(tmp_path: Path) -> None:
    trail = kept(5)
    trail.cuts[0] = (1, 100)
    lake, found = taken_in(tmp_path, trail)
    assert (found.records, found.missed) == (1, 5)
    assert rows(lake) == [(0, 0, "head"), (0, 1, "missed")]


def test_a_topic_that_was_made_again_is_read_from_its_start(tmp_path: Path) -> None:
    taken_in(tmp_path, kept(3))
    again = kept(1)
    again.topic_id = "second"
    lake, found = taken_in(tmp_path, again)
    assert found.records == 2
    assert len(rows(lake)) == 6


class Died(Exception):
    """The run is ended here."""


@pytest.mark.parametrize("point", ["lines", "parquet", "settled"])
def test_a_run_that_dies_leaves_nothing_twice_and_nothing_out(tmp_path: Path, point: str) -> None:
    count = 0

    class Dying(Lake):
        def settle(self, part: Path, place: Path) -> None:
            nonlocal count
            count += "entries" in str(place)
            if count == 2 and point != "settled":
                if point == "lines":
                    part.unlink()
                    (part.parent / f"{part.name}.others.lines.part").write_text("{")
                raise Died
            super().settle(part, place)
            if count == 2:
                raise Died

    trail, dying = kept(6), Dying(tmp_path)
    with pytest.raises(Died), dying.held(CLUSTER):
        list(ingest(dying, trail, rows_max=2))
    assert count == 2
    lake, _ = taken_in(tmp_path, trail, rows_max=2)
    assert [place for _, place, _ in rows(lake)] == list(range(7))
    assert not list(tmp_path.rglob("*.part"))


def test_the_lake_of_another_cluster_is_refused(tmp_path: Path) -> None:
    taken_in(tmp_path, kept(1))
    with (
        pytest.raises(LakeError, match=f"holds the trail of cluster {CLUSTER}, and this is other"),
        Lake(tmp_path).held("other"),
    ):
        pass


def test_two_runs_at_once_are_refused(tmp_path: Path) -> None:
    with (
        Lake(tmp_path).held(CLUSTER),
        pytest.raises(LakeError, match="another run holds"),
        Lake(tmp_path).held(CLUSTER),
    ):
        pass


def test_a_lake_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LakeError, match="cannot be written to"), Lake(tmp_path / "file").held(CLUSTER):
        pass


def test_files_have_a_bounded_size(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    with lake.held(CLUSTER):
        counts = [so_far.records for so_far in ingest(lake, kept(4), rows_max=2)]
    assert counts == [2, 4, 5]
    assert Ingested().records == 0
