"""The report of fifty users, five hundred topics and forty days in a real browser: sorted, searched, dark, narrow."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from kavka_audit.lake.directory import Lake
from kavka_audit.lake.snapshot import Snapshot
from kavka_audit.questions.query_runner import Settings
from kavka_audit.run import refresh
from kavka_broker.core.audit.changes import Change
from kavka_broker.core.audit.events import Changed, Denied
from kavka_operator.api.quota import INTERNAL_USERS
from tests.support.browser import Page, browser
from tests.unit.analytics.test_questions import topic, trail_of, use
from tests.unit.analytics.trail import CLUSTER, DAY_MS, NOW_MS, At

pytestmark = [pytest.mark.chromium]

USERS, TOPICS, DAYS = 50, 500, 40
HOSTILE = "<img src=x onerror=alert(1)>"
ROWS = "[...document.querySelectorAll('#top_talkers tbody tr')].slice(1).filter((row) => !row.hidden)"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found, drawn = tmp_path_factory.mktemp("lake"), Random(1)
    uses = [
        use(
            f"user-{drawn.randrange(USERS):02}",
            drawn.choice(("WRITE", "READ")),
            f"topic-{number % TOPICS:03}",
            drawn.randrange(1 << 24),
            end_ms=NOW_MS - drawn.randrange(DAYS) * DAY_MS,
        )
        for number in range(2 * TOPICS)
    ]
    refused = [At(Denied(f"User:{HOSTILE}", "::1", "READ", "topic", HOSTILE))]
    change = Change("CREATE", "topic", "orders")
    changed = [At(Changed(f"User:{INTERNAL_USERS[1]}", "::1", "kavka-operator", change)) for _ in range(9)]
    topics = [topic(f"topic-{number:03}", size=number) for number in range(TOPICS)]
    snapshot = Snapshot(CLUSTER, {"topics": topics}, name="main")
    refresh(Lake(found), trail_of(*uses, *refused, *changed), snapshot, Settings(NOW_MS), lambda _: None)
    return found


@pytest.fixture(scope="module")
def page(directory: Path) -> Iterator[Page]:
    with browser() as opened:
        opened.size(1400)
        opened.open((directory / "report.html").as_uri())
        yield opened


def column(page: Page, place: int) -> list[str]:
    return [str(text) for text in page.ask(f"{ROWS}.map((row) => row.cells[{place}].innerText)")]


def test_tables_are_sorted_by_their_figures_and_searched(page: Page) -> None:
    page.click("#top_talkers th:nth-child(5)")
    sizes = [float(text) for text in page.ask(f"{ROWS}.map((row) => row.cells[4].dataset.order)")]
    assert sizes == sorted(sizes, reverse=True)
    page.click("#top_talkers th:nth-child(5)")
    assert [float(text) for text in page.ask(f"{ROWS}.map((row) => row.cells[4].dataset.order)")] == sorted(sizes)
    page.click("#top_talkers th:nth-child(1)")
    assert column(page, 0) == sorted(column(page, 0), reverse=True)
    everything = len(column(page, 0))
    page.write("#top_talkers input[type=search]", "USER-07")
    page.until(f"{ROWS}.length < {everything}")
    assert {*column(page, 0)} == {"User:user-07"}
    assert page.faults == []


def test_the_operators_changes_are_folded(page: Page) -> None:
    rows = "document.querySelector('#config_changes details table').checkVisibility()"
    assert page.ask(rows) is False
    page.click("#config_changes summary")
    assert page.ask(rows) is True
    assert page.text("#config_changes summary") == "9 changes by the operator"


@pytest.mark.parametrize("width", [1400, 390])
def test_each_day_has_a_bar(page: Page, width: int) -> None:
    page.size(width)
    bars = "[...document.querySelectorAll('.days')[0].children].map((bar) => bar.getBoundingClientRect())"
    heights = [float(height) for height in page.ask(f"{bars}.map((box) => box.height)")]
    assert len(heights) == DAYS
    assert max(heights) > 50
    assert page.ask(f"{bars}.every((box) => box.width > 3 && box.right <= {width})")
    page.size(1400)


def test_no_clients_word_is_run(page: Page) -> None:
    assert page.ask("document.querySelectorAll('img').length") == 0
    assert HOSTILE in page.text("#denied_operations")
    assert page.faults == []


@pytest.mark.parametrize("is_dark", [False, True])
def test_a_phone_shows_it_without_scrolling_sideways(page: Page, *, is_dark: bool) -> None:
    page.size(390, is_dark=is_dark)
    page.until("document.documentElement.scrollWidth <= 390")
    paper = page.ask("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") is not is_dark
    page.size(1400)
