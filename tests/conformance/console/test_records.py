"""The newest records of a topic whose offsets have gaps: those of transactions, from a real producer."""

from pathlib import Path

from confluent_kafka import Producer

from kavka_operator.domain.access import OPEN
from kavka_operator.live_views.records import Query, read_records
from kavka_pytest.in_process import KafkaInProcess

TRANSACTIONS = 30


def test_the_newest_records_of_transactions_are_found_behind_their_markers(tmp_path: Path) -> None:
    with KafkaInProcess(tmp_path) as kafka:
        topic = kafka.topic()
        producer = Producer({"bootstrap.servers": str(kafka), "transactional.id": "settle"})
        producer.init_transactions(60)
        for number in range(TRANSACTIONS):
            producer.begin_transaction()
            producer.produce(topic, str(number))
            producer.commit_transaction(60) if number % 3 else producer.abort_transaction(60)
        committed = [str(number) for number in reversed(range(TRANSACTIONS)) if number % 3]
        for count, ended in ((5, "count"), (50, "end")):
            found = read_records(str(kafka), OPEN, Query(topic, count=count))
            assert ([record["value"] for record in found["records"]], found["ended"]) == (committed[:count], ended)
