"""`kavka up` with spec.audit: brokers keep a trail that `kavka audit` verifies and answers from."""

import stat

from confluent_kafka import Producer

from tests.operator.local.support import SECONDS_MAX, Kavka, wait_until

RECORDS = 25


def produce(kavka: Kavka) -> None:
    producer = Producer({"bootstrap.servers": kavka.bootstrap, "client.id": "importer"})
    for number in range(RECORDS):
        producer.produce("flights", str(number).encode())
    assert producer.flush(60) == 0


def test_a_trail_is_kept_with_a_key_of_the_cluster_and_answers(kavka: Kavka) -> None:
    file = kavka.file(config='{kavka.audit.interval.ms: "1000"}')
    analytics = '{schedule: "@daily", storage: {volume: {size: 1Gi}}}'
    file.write_text(
        file.read_text().replace("spec:\n  nodePools", f"spec:\n  audit: {{analytics: {analytics}}}\n  nodePools")
    )
    kavka.up(file)
    key = kavka.cluster / "audit.key"
    text = key.read_text()
    assert len(bytes.fromhex(text)) == 32
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    produce(kavka)
    place = str(kavka.directory / "lake")

    def answered() -> bool:
        code, said = kavka.run("audit", "run", "--directory", place)
        if "there is no topic __audit_events" in said:
            return False  # the controller makes it once it has heard of the brokers
        assert code == 0, said
        return f"{RECORDS} records" in said or "importer" in said or "flights" in said

    wait_until(answered, "the trail tells of the records", 3 * SECONDS_MAX)  # a run takes seconds of a busy machine
    code, said = kavka.run("audit", "verify", "--key-file", str(key))
    assert code == 0, said
    assert text.strip() not in kavka.said
    told = kavka.status()["analytics"]
    assert told["state"] == "Refused"
    assert told["message"].startswith("spec.audit.analytics runs on Kubernetes alone")
    assert text.strip() not in str(kavka.status())
    kavka.end()
    kavka.output.unlink()
    kavka.up(file)
    assert key.read_text() == text
