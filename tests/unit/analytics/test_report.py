"""The answers in a line each and the page with the evidence: figures with units, and no client's word as HTML."""

import csv
import json
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest

from kavka_audit.lake.directory import Lake
from kavka_audit.lake.snapshot import Snapshot
from kavka_audit.questions.query_runner import Settings, ask, questions
from kavka_audit.report.answers import FOUND, NOTHING, ORDER, answer
from kavka_audit.report.chain_summary import Chains
from kavka_audit.report.completeness_map import heat
from kavka_audit.report.csv_files import CHARACTERS_MAX
from kavka_audit.report.number_format import cell, date, moment, sized
from kavka_audit.report.page import Beside, page
from kavka_audit.report.plot import BARS_MAX, plot
from kavka_audit.report.previous import Previous, read_previous, write_previous
from kavka_audit.report.severity import WEIGHTS, WORDS, weight, weights
from kavka_audit.report.summary import summary
from kavka_audit.report.trend import Day, days_of, trend
from kavka_audit.run import ROWS_READ, refresh
from kavka_broker.core.audit.changes import Change
from kavka_broker.core.audit.events import Changed, Denied, LoggedIn
from kavka_broker.core.audit.usage import MINUTE_MS, Throttling, Use
from kavka_operator.api.audit import AuditSummary
from kavka_operator.api.quota import INTERNAL_USERS
from tests.unit.analytics.books import BUCKET_MS, Books, judged
from tests.unit.analytics.test_questions import BROKERS, grant, held, topic, trail_of, use
from tests.unit.analytics.trail import CLUSTER, DAY_MS, NOW_MS, At, Kept, answers, chain_of, taken_in

TEN_MINUTES_MS = 600_000
HOSTILE = "<script>alert('1')</script>"
TAGS = {
    "html",
    "meta",
    "title",
    "style",
    "h1",
    "p",
    "ul",
    "li",
    "a",
    "b",
    "section",
    "h2",
    "div",
    "table",
    "tr",
    "th",
    "td",
    "em",
    "i",
    "span",
    "script",
    "details",
    "summary",
}
DRAWN = {"svg", "rect", "text"}


class Tags(HTMLParser):
    """The tags of a page, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.text = ""
        self.headings: list[str] = []
        self._is_heading = False
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        self.scripts += tag == "script"
        self._is_heading = tag == "th"

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._is_heading:
            self.headings.append(data)


def test_each_question_has_an_answer_for_nothing_and_for_something() -> None:
    names = {question.name for question in questions()}
    assert FOUND.keys() == NOTHING.keys() == names


def busy() -> Kept:
    return trail_of(
        use("a", "WRITE", "old", end_ms=NOW_MS - 90 * DAY_MS),
        use("a", "WRITE", "orders", 3 << 20),
        use("b", "READ", "orders", 1 << 20),
        held(0),
        use("a", "WRITE", "orders", 6_000_000, end_ms=NOW_MS + 60_000),
        At(Use(f"User:{HOSTILE}", "::1", HOSTILE, "READ", "orders", 1, None)),
        At(Denied(f"User:{HOSTILE}", "::1", "READ", "topic", HOSTILE)),
        At(LoggedIn(None, "::1", "EXTERNAL")),
        At(Changed("User:a", "::1", "admin", Change("ALTER_CONFIGS", "topic", "orders", "retention.ms", HOSTILE, "8"))),
        At(Throttling("User:a", "::1", HOSTILE, "request", json.dumps({"user": HOSTILE}), 1.0, 1, 1)),
    )


TABLES: dict[str, list[dict[str, object]]] = {
    "brokers": BROKERS,
    "topics": [topic("old", size=5 << 20), topic("orders")],
    "grants": [grant("User:c", "READ", "orders")],
    "labels": [{"kind": "topic", "name": "orders", "label": "owner", "value": "shop"}],
    "partitions": [
        {"topic": "t", "partition": place, "leader": 1, "records": [9_000, 1, 1][place]} for place in range(3)
    ],
}


def test_answers_name_what_was_found(tmp_path: Path) -> None:
    trail = busy()
    trail.add(0, [], b"foreign")
    found = answers(tmp_path, trail, TABLES)
    lines = {name: answer(table) for name, table in found.items()}
    assert lines["deletable_topics"] == "1 topic; the largest is old, 5.0 MiB, last used by User:a."
    assert lines["unused_grants"] == "1 rule, as READ of orders for User:c."
    assert lines["hot_partitions"] == "1 partition; t-0 holds 3.0 times the mean of its topic."
    assert lines["audit_gaps"] == "dead: partition 0 (1)."
    assert lines["throttle_incidents"] == "2 incidents; the longest was User:a as app, 30.0 s in all."
    assert lines["quota_recommendations"].startswith("For user=a: 256.0 KiB/s instead of 97.7 KiB/s (produce, 1 minute")
    assert lines["traffic"].endswith("1.0 MiB read in 2 buckets of ten minutes.")
    assert lines["label_chargeback"].startswith("By owner: shop ")
    assert all(lines[name] != NOTHING[name] for name in lines if "completeness" not in name)


def test_the_traffic_is_that_of_all_time_and_the_plot_that_of_the_newest(tmp_path: Path) -> None:
    """After a week the sums and the plot were those of the first thousand buckets, and stayed so."""
    count = ROWS_READ + 200
    buckets = [use("a", "WRITE", "t", 1 << 20, end_ms=NOW_MS - place * TEN_MINUTES_MS) for place in range(count)]
    lake, _ = taken_in(tmp_path, trail_of(*reversed(buckets)))
    table = ask(lake, Settings(NOW_MS), ROWS_READ)["traffic"]
    assert (len(table.rows), table.count) == (ROWS_READ, count)
    assert answer(table) == "1.2 GiB written and 0 B read in 1,200 buckets of ten minutes."
    newest = NOW_MS - MINUTE_MS
    drawn = plot(table.dicts())
    labels = re.findall(r"<text [^>]*>([^<]*)</text>", drawn)
    last = newest - newest % TEN_MINUTES_MS
    assert labels == [moment(last - (BARS_MAX - 1) * TEN_MINUTES_MS), moment(last)]


def test_nothing_is_well_where_nothing_was_measured(tmp_path: Path) -> None:
    found = answers(tmp_path, busy(), TABLES)
    assert [weight(found[name]) for name in ("completeness", "topic_completeness")] == ["none", "none"]
    shown = page("c", NOW_MS, found, [])
    assert shown.count('<em class="none">no data</em>') == 2
    lacking = page("c", NOW_MS, found, ["its access rules: refused", "its quotas: refused"])
    assert lacking.count('<em class="none">no data</em>') == 2, "what was found counts, whatever else is not told"
    nothing = answers(tmp_path / "nothing", Kept())
    weighed = weights(nothing)
    assert {weighed[name] for name in WEIGHTS} == {"none"}
    assert "<b>no data</b> moved" in page("c", NOW_MS, nothing, [])


def test_an_answer_that_the_cluster_keeps_back_is_no_good_news(tmp_path: Path) -> None:
    found = answers(tmp_path, trail_of(use("a", "WRITE", "orders")))
    assert weights(found)["unused_grants"] == weights(found)["denied_operations"] == "well"
    refused = weights(found, ["its access rules: refused", "the records of partitions: refused"])
    assert [name for name, kind in refused.items() if kind != weights(found)[name]] == [
        "hot_partitions",
        "unused_grants",
    ]
    assert refused["unused_grants"] == "none"


def test_a_chain_without_an_end_alone_is_no_red(tmp_path: Path) -> None:
    """A broker that was killed leaves one; entries that are missing stay red."""
    trail = Kept()
    for start in (1, 2):
        trail.write(0, chain_of(1, [At(Use("User:a", "::1", "app", "WRITE", "t", 1, None))], epoch=start)[1])
    killed = answers(tmp_path / "killed", trail, {"brokers": BROKERS[:1]})["audit_gaps"]
    assert {row["gap"] for row in killed.dicts()} == {"unended"}
    assert weight(killed) == "look"
    trail.add(0, [], b"foreign")
    assert weight(answers(tmp_path / "dead", trail, {"brokers": BROKERS[:1]})["audit_gaps"]) == "wrong"


def test_many_chains_without_an_end_hide_no_other_gap(tmp_path: Path) -> None:
    """The page reads the first thousand rows, and whoever writes to the topic can make as many such chains."""
    trail = trail_of(use("a", "WRITE", "(others)"))
    trail.write(0, [entry for node in range(1, 6) for entry in chain_of(1, [], epoch=node + 1)[1]])
    table = answers(tmp_path, trail, {"brokers": BROKERS[:1]})["audit_gaps"]
    gaps = [row["gap"] for row in table.dicts()]
    assert gaps == ["unnamed", *["unended"] * 5]
    assert weight(table) == "wrong"


def test_three_figures_and_the_traffic_come_first(tmp_path: Path) -> None:
    shown = page(CLUSTER, NOW_MS, answers(tmp_path, busy(), TABLES), [], Beside("main"))
    figures = re.findall(r"<b>([^<]*)</b> (moved|held back|changed)<span>([^<]*)</span>", shown)
    assert [figure[1] for figure in figures] == ["moved", "held back", "changed"]
    assert figures[0][2] == "most by User:a"
    assert figures[1][0] == "2"
    assert figures[2] == ("1", "changed", "the last by User:a")
    assert shown.index("<b>2</b>") < shown.index("<svg") < shown.index("<h2>Security") < shown.index("<section")
    assert {"Security", "Cost", "Capacity", "Hygiene"} <= {*re.findall("<h2>([A-Z][a-z]+)</h2>", shown)}
    assert f"Cluster main ({CLUSTER})" in shown


def test_chains_are_said_to_hold_where_they_were_looked_at(tmp_path: Path) -> None:
    found = answers(tmp_path, busy(), TABLES)
    assert '<em class="none">Chains were not looked at' in page(CLUSTER, NOW_MS, found, [])
    sound = page(CLUSTER, NOW_MS, found, [], Beside(chains=Chains({"sound": 2}, (), NOW_MS)))
    assert f'<em class="well">2 chains verified until {moment(NOW_MS)}' in sound
    unnamed = page(CLUSTER, NOW_MS, found, [], Beside(chains=Chains({"sound": 2}, (), NOW_MS, 1)))
    assert "hashes and links; no head names the cluster of 1 chain. Signatures" in unnamed
    unsigned = page(CLUSTER, NOW_MS, found, [], Beside(chains=Chains({"sound": 2, "unsigned": 1}, (), NOW_MS, 1)))
    assert '<em class="look">Unsigned: nothing shows of 1 chain that the cluster is the one that was' in unsigned
    many = page(CLUSTER, NOW_MS, found, [], Beside(chains=Chains({"unchecked": 1}, (), 0)))
    assert "There are more chains than are followed" in many
    damaged = Chains({"sound": 1, "damaged": 1}, ["1-7 (flipped at 3)"], NOW_MS)
    assert '<em class="wrong">Damaged chains: 1-7 (flipped at 3).' in page(
        CLUSTER, NOW_MS, found, [], Beside(chains=damaged)
    )


def test_a_summary_has_the_weights_and_no_name(tmp_path: Path) -> None:
    found = answers(tmp_path, busy(), TABLES)
    now = datetime(2026, 11, 30, 2, tzinfo=UTC)
    text = summary(now, found, [], Chains({"sound": 2}, (), NOW_MS))
    assert len(text.encode()) <= 4_000, "the kubelet cuts a message at 4,096 bytes"
    assert not any(name in text for name in (HOSTILE[:8], "orders", "User:"))
    told = AuditSummary.decode(json.loads(text))  # what the operator reads
    assert told.time == now
    assert told.chains is not None
    assert told.chains.startswith("2 chains verified until ")
    assert [line.weight for line in told.answers] == sorted(
        (line.weight for line in told.answers), key=[*WORDS.values()].index
    )
    by_question = {line.question: line for line in told.answers}
    for name, table in found.items():
        line = by_question[table.question.title]
        assert (line.weight, line.rows) == (WORDS[weights(found)[name]], table.count)


def test_a_run_says_what_is_new_since_the_one_before(tmp_path: Path) -> None:
    lake, trail = Lake(tmp_path), Kept()
    changes = [At(Changed("User:a", "::1", "admin", Change("CREATE", "topic", name))) for name in ("t", "u", "v")]
    entries = chain_of(1, changes)[1]
    shown = []
    for upto, now_ms in ((2, NOW_MS), (4, NOW_MS + DAY_MS), (4, NOW_MS + 8 * DAY_MS)):
        trail.records.clear()
        trail.write(0, entries[:upto])
        refresh(lake, trail, Snapshot(CLUSTER, {}, name="main"), Settings(now_ms), lambda _: None)
        shown.append((tmp_path / "report.html").read_text())
    assert "since the last run" not in shown[0]
    assert "<i>+2 since the last run</i>" in shown[1]
    assert f"changes are since {moment(NOW_MS)}" in shown[1]
    assert f"<i>+2 since {date(NOW_MS)}</i>" not in shown[2], "the last day before a week has the later count"
    refresh(lake, trail, Snapshot(CLUSTER, {}), Settings(NOW_MS + 7 * DAY_MS), lambda _: None)
    assert f"<i>+2 since {date(NOW_MS)}</i>" in (tmp_path / "report.html").read_text()


def changed(principal: str, count: int) -> list[At]:
    name = f"User:{principal}"
    return [At(Changed(name, "::1", "kavka-operator", Change("CREATE", "topic", f"t{n}"))) for n in range(count)]


def test_changes_by_the_operator_are_folded_and_do_not_count(tmp_path: Path) -> None:
    """Its principal is by its certificate: any client may have its client id."""
    operator = INTERNAL_USERS[1]
    assert operator.startswith("CN=operator,")
    trail = trail_of(*changed(operator, ROWS_READ), *changed("a", 1), *changed(operator, 1), *changed("ANONYMOUS", 1))
    found = answers(tmp_path, trail)
    assert answer(found["config_changes"]).endswith(f"; {ROWS_READ + 1:,} more by the operator.")
    shown = page(CLUSTER, NOW_MS, found, [])
    (people,) = re.findall('<section id="config_changes">(.*?)<details>', shown, re.DOTALL)
    folded = shown.partition("<details>")[2]
    assert {*re.findall("User:[^<]*(?=<td)", people)} == {"User:a", "User:ANONYMOUS"}
    assert folded.startswith(f"<summary>{ROWS_READ + 1:,} changes by the operator</summary>")
    assert f"User:{operator}<" in folded.partition("</details>")[0]
    assert "is operator" not in shown
    assert f"<b>2</b> changed<span>the last by User:ANONYMOUS; {ROWS_READ + 1:,} more by the operator" in shown
    write_previous(lake := Lake(tmp_path), NOW_MS, found, Previous())
    assert read_previous(lake).counts["config_changes"] == 2


def test_where_the_operator_alone_changes_anything_that_is_said(tmp_path: Path) -> None:
    found = answers(tmp_path, trail_of(*changed(INTERNAL_USERS[1], 3)))
    assert answer(found["config_changes"]) == "3 changes, all by the operator."
    shown = page(CLUSTER, NOW_MS, found, [])
    assert "<b>0</b> changed<span>nobody changed anything but the operator: 3 times" in shown
    assert "3 changes by the operator</summary>" in shown


def test_what_earlier_days_had_is_kept_for_a_month(tmp_path: Path) -> None:
    lake, found, previous = Lake(tmp_path), answers(tmp_path, busy(), TABLES), Previous()
    for day in range(40):
        write_previous(lake, NOW_MS + day * DAY_MS, found, previous)
        previous = read_previous(lake)
    first_ms = NOW_MS - NOW_MS % DAY_MS + 9 * DAY_MS
    assert [*previous.days] == [first_ms + day * DAY_MS for day in range(31)]
    assert previous.days[first_ms] == previous.counts


def test_the_trend_has_a_bar_for_each_day_and_grey_where_nothing_is_told(tmp_path: Path) -> None:
    ago = (3, 1, 100)
    moved = [use("a", "WRITE", "t", 1 << 20, end_ms=NOW_MS - days * DAY_MS) for days in ago]
    refused = At(Denied("User:<b>", "::1", "READ", "topic", "t"), NOW_MS - DAY_MS - 1, NOW_MS - DAY_MS, 7)
    now = use("a", "READ", "t", 1 << 19, end_ms=NOW_MS)
    lake, _ = taken_in(tmp_path, trail_of(*sorted([*moved, refused, now], key=lambda told: told.end_ms)))
    ask(lake, Settings(NOW_MS), 1)
    days = days_of(lake, NOW_MS)
    today_ms = NOW_MS - NOW_MS % DAY_MS
    assert days == [
        Day(today_ms - 3 * DAY_MS, 1 << 20, 0, 0),
        Day(today_ms - DAY_MS, 1 << 20, 7, 0),
        Day(today_ms, 1 << 19, 0, 0),
    ]
    drawn = trend(days, NOW_MS)
    rows = re.findall(r'<b>([^<]*)</b> ([^<]*)</p><div class="days">(.*?)</div>', drawn)
    told = [
        (label, words, re.findall(r'(?:class="(\w+)" )?(?:style="--share:([0-9.]+)%" )?title', bars))
        for label, words, bars in rows
    ]
    grey = ("gap", "")
    most = f"1.0 MiB at most, on {date(NOW_MS - DAY_MS)}"
    assert told == [
        ("moved", most, [("written", "100.0"), grey, ("written", "100.0"), ("written", "50.0")]),
        ("refused", f"7 at most, on {date(NOW_MS - DAY_MS)}", [("", ""), grey, ("lacking", "100.0"), ("", "")]),
        ("held back", "nothing", [("", ""), grey, ("", ""), ("", "")]),
    ]
    assert f'title="{date(NOW_MS)}: 512.0 KiB moved so far"' in drawn
    assert trend(days[:1], NOW_MS) == "", "one day is no trend"


@pytest.mark.parametrize(
    "left",
    [
        *(b"[]", b"{", b"[" * 100_000, b'{"now_ms": 1e999, "rows": {}}', b'{"now_ms": 99999999999999999, "rows": {}}'),
        *(b'{"now_ms": 1, "rows": {}, "days": []}', b'{"now_ms": 1, "rows": {}, "days": {"-1": {}}}', None),
    ],
)
def test_what_no_run_has_left_says_nothing(tmp_path: Path, left: bytes | None) -> None:
    lake, place = Lake(tmp_path), tmp_path / "snapshot/answers.json"
    place.parent.mkdir()
    place.mkdir() if left is None else place.write_bytes(left)
    assert read_previous(lake) == Previous()


def test_the_evidence_is_there_as_csv(tmp_path: Path) -> None:
    """A spreadsheet runs no client's word, and shows moments as such."""
    trail = trail_of(
        At(Changed("User:a", "::1", "=cmd()", Change("ALTER_CONFIGS", "topic", "orders", "retention.ms", "-1", "8"))),
        At(Changed("User:c", "::1", "c", Change("DELETE", "topic", "t" * 3_000))),
        At(Changed("User:b", "::1", "x;=cmd()", Change("CREATE", "topic", "\uff1dcmd()"))),
    )
    refresh(Lake(tmp_path), trail, Snapshot(CLUSTER, {}), Settings(NOW_MS), lambda _: None)
    file = tmp_path / "tables/config_changes.csv"
    row, semicolon, long = csv.DictReader(file.read_text().splitlines())
    assert long["resource"] == "t" * CHARACTERS_MAX
    assert (semicolon["client_id"], semicolon["resource"]) == ("x;=cmd()", "'\uff1dcmd()")
    assert '"x;=cmd()"' in file.read_text(), "a field with a semicolon is one field to every spreadsheet"
    assert (row["client_id"], row["config_value"], row["config_previous"]) == ("'=cmd()", "'-1", "8")
    assert row["end"] == datetime.fromtimestamp(NOW_MS / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    assert 'href="tables/config_changes.csv"' in (tmp_path / "report.html").read_text()
    assert {file.stem for file in (tmp_path / "tables").glob("*.csv")} == {question.name for question in questions()}


def test_what_is_wrong_comes_first_and_is_marked(tmp_path: Path) -> None:
    books = Books()
    books.with_log().fill(0, [BUCKET_MS] * 5)
    producer, reader = books.teller(), books.teller("consumer", HOSTILE)
    producer.add(0, BUCKET_MS, *range(6))
    producer.tell()
    reader.add(0, BUCKET_MS, *range(5), 3)
    reader.tell()
    tables = judged(tmp_path, books)
    assert [name for name in ORDER if weight(tables[name]) == "wrong"] == ["completeness", "topic_completeness"]
    assert weight(tables["audit_gaps"]) == "well"
    assert weight(tables["traffic"]) == "told"
    shown = (tmp_path / "report.html").read_text()
    assert shown.index('id="completeness"') < shown.index('id="audit_gaps"') < shown.index('id="traffic"')
    assert '<em class="wrong">2 wrong</em>' in shown
    assert '<rect class="lacking"' in shown
    assert '<rect class="twice"' in shown
    tags = Tags()
    tags.feed(shown)
    assert tags.found <= TAGS | DRAWN
    assert f"orders, from the log to group {HOSTILE}" in tags.text


def test_the_map_has_the_worst_lines_of_the_last_day() -> None:
    def row(topic: str, bucket: int, missing: int, *, is_closed: bool = True) -> dict[str, object]:
        sums = {"expected": 10, "missing": missing, "duplicates": 0, "is_closed": is_closed}
        return {"topic": topic, "tier": "log", "name": "", "bucket_ms": bucket * 600_000} | sums

    many = [row(f"topic-{number:02}", 500, number) for number in range(40)]
    drawn = heat([*many, row("topic-00", 356, 9), row("topic-01", 500, 99, is_closed=False)])
    assert "topic-39" in drawn
    assert "topic-20" in drawn
    assert "topic-19" not in drawn
    assert "topic-00" not in drawn
    assert drawn.count("<rect") == 20
    assert heat([]) == ""


def test_the_page_has_no_tag_of_a_clients_making(tmp_path: Path) -> None:
    found = answers(tmp_path, busy(), TABLES)
    tags = Tags()
    tags.feed(page(CLUSTER, NOW_MS, found, [f"its rules: {HOSTILE}"]))
    assert tags.found <= TAGS | DRAWN
    assert tags.scripts == 1, "the page's own"
    assert {"svg", "rect"} <= tags.found
    assert HOSTILE in tags.text
    assert {"longest delay", "amount", "ten minutes from", "allowed at other times"} <= set(tags.headings)
    assert all(question.title in tags.text for question in questions())


def test_a_page_of_nothing_says_so(tmp_path: Path) -> None:
    tags = Tags()
    tags.feed(page(CLUSTER, NOW_MS, answers(tmp_path, Kept()), ()))
    assert not tags.found & DRAWN
    assert all(words in tags.text for words in NOTHING.values())  # beside the words for what was not measured


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("bytes", 0, "0 B"),
        ("bytes", 1536, "1.5 KiB"),
        ("share", 0.25, "25.0 %"),
        ("cents", 123_456, "1,234.56"),
        ("first_ms", NOW_MS, "2026-09-21 14:13:20Z"),
        ("throttle_time_ms", 1_500, "1.5 s"),
        ("is_new", True, "yes"),
        ("records", 1_000, "1,000"),
        ("partition", 1_000, "1000"),
        ("last_read_ms", None, ""),
    ],
)
def test_figures_are_shown_with_their_unit(column: str, value: object, text: str) -> None:
    assert cell(column, value) == text


def test_a_size_has_a_unit_that_there_is() -> None:
    assert sized(2**70) == "1048576.0 PiB"
