"""A client in a pod of its own: `produce` numbers until it is ended, `check` that none is lost and none is there twice,
`commit` as the group `readers`.

It speaks TLS where the file of `AUTHORITY` is there.

Its file is given to `python -c` in the operator's image, which has the library.
"""

import sys
import time
from pathlib import Path

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

TOPIC, PARTITIONS = "flights", 3
BATCH = 20
SECONDS_MAX = 300.0
AUTHORITY = Path("/etc/ca/ca.crt")
ACCESS = {"security_protocol": "SSL", "ssl_cafile": str(AUTHORITY)} if AUTHORITY.exists() else {}


def produce(bootstrap: str) -> None:
    """Produce numbers in turn, acks=all; each line that is printed is the count of those acknowledged so far."""
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        acks="all",
        enable_idempotence=True,
        delivery_timeout_ms=int(SECONDS_MAX * 1000),
        **ACCESS,
    )
    count = 0
    while True:
        numbers = range(count, count + BATCH)
        sent = [producer.send(TOPIC, str(number).encode(), partition=number % PARTITIONS) for number in numbers]
        for future in sent:
            future.get(SECONDS_MAX)
        count += BATCH
        print(count, flush=True)
        time.sleep(0.2)


def check(bootstrap: str, count: int) -> None:
    """Print what is wrong with the first numbers; nothing where each is there once."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False, **ACCESS)
    places = [TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
    consumer.assign(places)
    consumer.seek_to_beginning()
    ends, found = consumer.end_offsets(places), list[int]()
    while any(consumer.position(place) < ends[place] for place in places):
        found += [int(record.value) for records in consumer.poll(1000).values() for record in records]
    missing = sorted(set(range(count)) - set(found))
    print(f"{len(missing)} lost, {len(found) - len(set(found))} twice")


def commit(bootstrap: str) -> None:
    """Read a first record as a member of a group, and commit that."""
    consumer = KafkaConsumer(
        TOPIC, bootstrap_servers=bootstrap, group_id="readers", auto_offset_reset="earliest", **ACCESS
    )
    next(consumer)
    consumer.commit()
    consumer.close()


if __name__ == "__main__":
    command, address, *rest = sys.argv[1:]
    if command == "check":
        check(address, int(rest[0]))
    else:
        {"produce": produce, "commit": commit}[command](address)
