import pytest

from bench import load
from bench.load import Outcome
from bench.processes import ClientError

RDKAFKA_PRODUCED = """\
% Sending messages of size 100 bytes
% 600000 messages produced (60000000 bytes), 600000 delivered (offset 0, 0 failed) in 500ms: 1200000 msgs/s and \
120.00 MB/s, 0 produce failures, 0 in queue, no compression
"""
RDKAFKA_CONSUMED = "% 600000 messages (60000000 bytes) consumed in 200ms: 3000000 msgs/s (300.00 MB/s)\n"
JAVA_PRODUCED = """\
300000 records sent, 250000.0 records/sec (23.84 MB/sec), 9.10 ms avg latency, 402.00 ms max latency, 5 ms 50th, \
30 ms 95th, 40 ms 99th, 45 ms 99.9th.
200000 records sent, 300000.5 records/sec (28.61 MB/sec), 8.10 ms avg latency, 50.00 ms max latency, 7 ms 50th, \
38 ms 95th, 42 ms 99th, 43 ms 99.9th.
"""
JAVA_CONSUMED = (
    "2026-11-21 11:40:20:345, 2026-11-21 11:40:24:461, 57.2, 13.9, 600000, 145772.5, 3259, 857, 66.7, 700116.6\n"
)


def test_the_line_of_what_rdkafka_produced_is_read() -> None:
    assert load.parse_rdkafka_produced(RDKAFKA_PRODUCED, 600_000) == Outcome(600_000, 1_200_000.0)


def test_rdkafka_that_lost_a_record_is_no_measure() -> None:
    with pytest.raises(ClientError, match="600000 of 600001 delivered"):
        load.parse_rdkafka_produced(RDKAFKA_PRODUCED, 600_001)
    with pytest.raises(ClientError, match="2 failed"):
        load.parse_rdkafka_produced(RDKAFKA_PRODUCED.replace("0 failed", "2 failed"), 600_000)


def test_the_line_of_what_rdkafka_consumed_is_read() -> None:
    assert load.parse_rdkafka_consumed(RDKAFKA_CONSUMED, 600_000) == Outcome(600_000, 3_000_000.0)
    with pytest.raises(ClientError, match="600000 of 600001 consumed"):
        load.parse_rdkafka_consumed(RDKAFKA_CONSUMED, 600_001)


def test_java_produced_leaves_the_warm_up_out_of_rate_and_latency_but_not_of_the_bytes() -> None:
    assert load.parse_java_produced(JAVA_PRODUCED, 300_000) == Outcome(300_000, 300_000.5, 7.0, 42.0, 43.0)


def test_java_consumed_is_the_rate_without_the_join() -> None:
    assert load.parse_java_consumed(JAVA_CONSUMED, 600_000) == Outcome(600_000, 700_116.6)
    with pytest.raises(ClientError, match="600000 of 600001 consumed"):
        load.parse_java_consumed(JAVA_CONSUMED, 600_001)


def test_settings_of_librdkafka_reach_its_commands() -> None:
    what = load.Load(load.RDKAFKA, 100, 1, 10, "all", ("security.protocol=ssl",))
    for make in (load.rdkafka_produce_command, load.rdkafka_consume_command):
        command = make("b", "t", what, "rdkafka_performance")
        assert command[command.index("security.protocol=ssl") - 1] == "-X"


@pytest.mark.parametrize(
    "parse",
    [load.parse_rdkafka_produced, load.parse_rdkafka_consumed, load.parse_java_produced, load.parse_java_consumed],
)
def test_output_without_a_result_is_shown(parse: object) -> None:
    assert callable(parse)
    with pytest.raises(ClientError, match="no broker here"):
        parse("no broker here", 1)


def test_clients_are_chosen_by_how_their_names_begin() -> None:
    assert load.known(load.PRODUCERS, ["java"]) == [load.JAVA_SMALL, load.JAVA_LARGE]
    assert load.known(load.CONSUMERS, ["rdkafka"]) == [load.RDKAFKA]
    assert load.known(load.PRODUCERS, []) == list(load.PRODUCERS)
