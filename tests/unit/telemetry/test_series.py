"""What a scrape sees of pushes."""

from kavka_broker.core.client_names import LABEL_BYTES_MAX
from kavka_broker.core.telemetry import series as bounds
from kavka_broker.core.telemetry.otlp import Kind, Point, Pushed
from kavka_broker.core.telemetry.series import OTHER, TOTALS_MAX, AllSeries, Source, gathered, source

APP = Source("app", "java/4.3")
ONE, TWO = b"\1" * 16, b"\2" * 16
INTERVAL_MS = 30_000


def level(value: float, metric: str = "m", identity: bytes = b"") -> Point:
    return Point(metric, Kind.LEVEL, value, identity)


def total(value: float, identity: bytes = b"") -> Point:
    return Point("m", Kind.TOTAL, value, identity)


class Kept:
    """Series, and the pushes into them."""

    def __init__(self, series_max: int = 100, per_client_max: int = 10, totals_max: int = TOTALS_MAX) -> None:
        self.series = AllSeries(series_max, per_client_max, totals_max)
        self.now_ms = 0

    def take(self, *points: Point, instance: bytes = ONE, client: Source = APP) -> None:
        pushed = gathered(Pushed(list(points)), lambda metric: metric != "unwanted")
        self.series.take(client, instance, pushed.points, INTERVAL_MS, self.now_ms)

    def values(self) -> dict[tuple[str, str], float]:
        return {(key.client.client_id, key.metric): value for key, value in self.series}


def test_the_largest_of_a_clients_nodes_counts() -> None:
    kept = Kept()
    kept.take(level(1, identity=b"1"), level(3, identity=b"2"), level(2, identity=b"3"))
    assert kept.values() == {("app", "m"): 3}


def test_the_largest_of_several_instances_counts_until_it_is_old() -> None:
    kept = Kept()
    kept.take(level(5), instance=ONE)
    kept.take(level(3), instance=TWO)
    assert kept.values() == {("app", "m"): 5}
    kept.take(level(1), instance=ONE)
    assert kept.values() == {("app", "m"): 1}, "the instance itself has said so"
    kept.take(level(3), instance=TWO)
    kept.now_ms = 2 * INTERVAL_MS
    kept.take(level(2), instance=ONE)
    assert kept.values() == {("app", "m"): 2}, "the other one is not heard of any more"


def test_levels_may_be_below_nothing() -> None:
    kept = Kept()
    kept.take(level(-4))
    assert kept.values() == {("app", "m"): -4}


def test_only_what_was_asked_for_is_kept() -> None:
    kept = Kept()
    kept.take(level(1), level(2, "unwanted"))
    assert kept.values() == {("app", "m"): 1}


def test_a_push_of_very_many_metrics_is_cut_and_counted() -> None:
    points = [level(number, f"m{number}") for number in range(5)] + [level(9, "m0"), total(1, b"1"), total(2, b"2")]
    pushed = gathered(Pushed(points, omitted=3), lambda _: True, points_max=4)
    assert [point.metric for point in pushed.points] == ["m0", "m1", "m2", "m3"]
    assert pushed.points[0].value == 9
    assert pushed.omitted == 3 + 3


def test_flows_are_added_up() -> None:
    kept = Kept()
    for instance, value in ((ONE, 2.0), (TWO, 3.0), (ONE, 4.0)):
        kept.take(Point("m", Kind.DELTA, value), Point("m", Kind.DELTA, 1.0), instance=instance)
    assert kept.values() == {("app", "m"): 12}


def test_totals_count_by_what_they_have_grown() -> None:
    kept = Kept()
    kept.take(total(100, b"1"), total(50, b"2"))
    assert kept.values() == {("app", "m"): 0}, "what was before nobody knows"
    kept.take(total(110, b"1"))
    kept.take(total(70, b"2"))
    kept.take(total(1000, b"1"), instance=TWO)
    assert kept.values() == {("app", "m"): 30}
    kept.take(total(5, b"1"))
    assert kept.values() == {("app", "m"): 35}, "it began again at 0"


def test_a_total_that_was_forgotten_is_not_counted_twice() -> None:
    kept = Kept(totals_max=2)
    for identity in (b"1", b"2", b"3"):
        kept.take(total(100, identity))
    kept.take(total(101, b"1"))
    assert kept.values() == {("app", "m"): 0}
    kept.take(total(103, b"1"))
    assert kept.values() == {("app", "m"): 2}


def test_a_client_with_too_many_metrics_is_counted_with_the_others() -> None:
    kept = Kept(per_client_max=2)
    kept.take(*(level(number, f"m{number}") for number in range(5)))
    assert kept.values() == {("app", "m0"): 0, ("app", "m1"): 1, (OTHER, "m2"): 2, (OTHER, "m3"): 3}
    assert kept.series.omitted_total == 1


def test_clients_beyond_the_bound_are_counted_together() -> None:
    kept = Kept(series_max=2)
    for number in range(5):
        kept.take(Point("m", Kind.DELTA, 1.0), client=Source(f"app-{number}", ""))
    assert kept.values() == {("app-0", "m"): 1, ("app-1", "m"): 1, (OTHER, "m"): 3}


def test_a_series_ends_when_it_is_not_pushed_any_more() -> None:
    kept = Kept(series_max=1)
    kept.take(level(1))
    kept.now_ms = 3 * INTERVAL_MS - 1
    kept.take(level(1), client=Source("late", ""))
    assert list(kept.values()) == [("app", "m"), (OTHER, "m")]
    kept.now_ms += bounds.EXPIRE_MS_MIN
    kept.take(level(1), client=Source("later", ""))
    assert list(kept.values()) == [(OTHER, "m"), ("later", "m")]


def test_names_that_are_too_long_are_cut_and_stay_apart() -> None:
    labels = source("a" * 300, "b" * 300, "1")
    assert (len(labels.client_id), len(labels.software)) == (LABEL_BYTES_MAX, LABEL_BYTES_MAX)
    assert labels.client_id.startswith("aaa")
    assert source("a" * 300 + "x", "b" * 300, "1").client_id != labels.client_id
    assert source("a" * 300, "b" * 300, "2").software != labels.software
    assert len(source("\U0001f600" * 300, "", "").client_id.encode()) <= LABEL_BYTES_MAX
    assert source("app", "", "") == Source("app", "")
    assert source("app", "java", "4.3") == Source("app", "java/4.3")
