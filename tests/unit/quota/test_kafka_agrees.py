"""Our rate and bucket beside Apache Kafka's own classes, on the same random traffic."""

import random
import subprocess
from pathlib import Path

import pytest

from kavka_broker.core.quota.bucket import TokenBucket
from kavka_broker.core.quota.rate import SampledRate, SampleWindow
from tools.kafka_jars import class_path

SEED = 20_251_121
RUNS, STEPS = 60, 200
EPOCH_MS = 1_760_000_000_000  # Kafka's bucket starts at the epoch, so it is full by now


def script(chance: random.Random) -> list[tuple[str, ...]]:
    lines: list[tuple[str, ...]] = []
    for _ in range(RUNS):
        window = SampleWindow(chance.choice([1, 2, 5, 11]), chance.choice([100, 1000, 2000]))
        lines.append(("new", str(window.count), str(window.size_ms), str(chance.choice([5.0, 1000.0]))))
        now_ms, pace_ms = EPOCH_MS, chance.choice([5, 300, 3000])
        for _ in range(STEPS):
            now_ms += chance.randrange(pace_ms) if chance.random() < 0.98 else 20_000
            lines.append(("record", str(chance.randrange(10_000)), str(now_ms)))
            if chance.random() < 0.5:
                now_ms += chance.randrange(2) * chance.randrange(pace_ms)
                lines.append(("measure", str(now_ms)))
    return lines


def ours(lines: list[tuple[str, ...]]) -> list[tuple[float, float, float]]:
    rate, bucket, limit = SampledRate(SampleWindow()), TokenBucket(SampleWindow()), 0.0
    found: list[tuple[float, float, float]] = []
    for verb, *words in lines:
        match verb:
            case "new":
                window, limit = SampleWindow(int(words[0]), int(words[1])), float(words[2])
                rate, bucket = SampledRate(window), TokenBucket(window)
            case "record":
                rate.record(int(words[0]), int(words[1]))
                bucket.spend(int(words[0]), int(words[1]), limit)
            case "measure":
                now_ms = int(words[0])
                found.append((rate.measure(now_ms), rate.measured_ms(now_ms), bucket.refill(now_ms, limit)))
    return found


@pytest.mark.java
def test_rate_window_and_tokens_are_those_of_apache_kafka() -> None:
    lines = script(random.Random(SEED))
    source = Path(__file__).with_name("KafkaRate.java")
    text = "\n".join(" ".join(line) for line in lines)
    command = ["java", "-cp", class_path(), str(source)]

    answer = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120, check=True)

    kafkas = [tuple(float(word) for word in line.split()) for line in answer.stdout.splitlines()]
    assert len(kafkas) > RUNS * STEPS / 3
    for mine, theirs in zip(ours(lines), kafkas, strict=True):
        assert mine == pytest.approx(theirs, rel=1e-9, abs=1e-6)
