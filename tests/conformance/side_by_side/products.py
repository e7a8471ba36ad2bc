"""Either product on one directory: what a node was formatted with and wrote, the other goes on with."""

import sys
from pathlib import Path
from typing import Final

from tests.support.servers import LOG4J, Server
from tools.kafka_jars import class_path
from tools.kafka_jvm import java

KAVKA: Final = "kavka"
KAFKA: Final = "apache-kafka"

SETTINGS: Final = {
    # The transactions' own topic is small, so that Apache Kafka makes and loads it at once.
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "kavka.admin.listener": "",
}


def become(server: Server, product: str) -> None:
    """The next start of this node is one of `product`, with the same settings on the same directory."""
    home, config = server.directory, server.directory / "server.properties"
    server.command = kavka(config) if product == KAVKA else apache_kafka(home, config)


def kavka(config: Path) -> list[str]:
    return [sys.executable, "-m", "kavka_broker", "run", "--config", str(config)]


def apache_kafka(home: Path, config: Path) -> list[str]:
    logging = home / "log4j2.properties"
    logging.write_text(LOG4J)
    return [
        *java("384M"),
        f"-Dlog4j2.configurationFile={logging}",
        f"-Dkafka.logs.dir={home}",
        "-cp",
        class_path(),
        "kafka.Kafka",
        str(config),
    ]
