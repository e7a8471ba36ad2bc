"""What Spark is asked to do, decided without it: its settings, and the rounds in which a topic is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka_audit.spark.micro_batches import batches, rounds
from kavka_audit.spark.settings import ALWAYS, COLLECTOR, LOCAL, collector, missing


def test_a_file_of_settings_has_the_last_word() -> None:
    given = {"spark.master": "k8s://https://server", "spark.log.level": "INFO", **dict.fromkeys(ALWAYS, "otherwise")}
    found = missing(given)
    assert found.items() >= ALWAYS.items()
    found = {name: value for name, value in found.items() if name not in ALWAYS}
    assert not found.keys() & (given.keys() | LOCAL.keys())
    assert found["spark.sql.session.timeZone"] == "UTC"


def test_without_any_all_runs_in_this_process() -> None:
    assert missing({}).items() >= {"spark.master": "local[*]", **LOCAL}.items()


@pytest.mark.parametrize("named", ["-XX:+UseG1GC", "-Dx=y -XX:+UseSerialGC -Xss1m", "-XX:-UseParallelGC"])
def test_java_is_told_of_no_second_collector(named: str) -> None:
    assert collector("", f"spark.driver.extraJavaOptions {named}") == ""
    by_name = "spark.executor.extraJavaOptions"
    assert "spark.executor.defaultJavaOptions" not in missing({by_name: named})
    assert missing({by_name: "-XX:+UseStringDeduplication"})["spark.executor.defaultJavaOptions"] == COLLECTOR
    assert collector("", "-XX:+UseCompressedOops") == COLLECTOR


@given(
    st.dictionaries(st.integers(0, 50), st.tuples(st.integers(0, 1_000), st.integers(1, 1_000)), max_size=12),
    st.integers(1, 100),
    st.integers(1, 8),
)
def test_rounds_read_each_offset_once_and_in_order(
    spans: dict[int, tuple[int, int]], file_records_max: int, tasks_max: int
) -> None:
    ranges = [(partition, first, first + count) for partition, (first, count) in spans.items()]
    reached = {partition: first for partition, first, _ in ranges}
    for taken in rounds(ranges, file_records_max, tasks_max):
        assert sum(-(-(until - first) // file_records_max) for _, first, until in taken) <= tasks_max
        for partition, first, until in taken:
            assert first == reached[partition] < until
            reached[partition] = until
    assert reached == {partition: until for partition, _, until in ranges}


@pytest.mark.parametrize("records_max", [1, 7, 1_000])
def test_batches_have_each_offset_once_and_in_order(records_max: int) -> None:
    ranges = [(0, 5, 30), (1, 0, 0), (2, 7, 9), (3, 0, 14)]
    found = list(batches(ranges, records_max))
    assert max(sum(end - begin for _, begin, end in batch) for batch in found) <= records_max
    offsets = [(partition, offset) for batch in found for partition, *span in batch for offset in range(*span)]
    assert offsets == [(partition, offset) for partition, *span in ranges for offset in range(*span)]
