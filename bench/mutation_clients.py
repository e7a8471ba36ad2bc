"""Clients that make and delete topics as fast as they are let; `taken` counts partitions made and partitions deleted.

librdkafka's admin client asks with CreateTopics 4, which is not refused but told to wait; kafka-python with 7, which is
refused with THROTTLING_QUOTA_EXCEEDED, and asks again as soon as it has waited.
"""

import time
from collections.abc import Callable
from typing import Any, Final

import confluent_kafka.admin as kafka_admin
from kafka.admin import KafkaAdminClient
from kafka.errors import NodeNotReadyError

from bench import wire
from bench.quota_clients import Client

ANSWER_SECONDS_MAX: Final = 60.0
WAITING_SECONDS: Final = 0.01
THROTTLING_QUOTA_EXCEEDED: Final = 89


class RdkafkaAdmin(Client):
    """confluent-kafka: a topic made, then deleted, and so on."""

    def __init__(self, bootstrap: str, topic: str, client_id: str, partitions: int) -> None:
        self._settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap, "client.id": client_id, "log_level": 0, "throttle_cb": self._throttled,
        }  # fmt: skip
        self._topic, self._partitions = topic, partitions
        super().__init__()

    def run(self) -> None:
        admin, number = kafka_admin.AdminClient(self._settings), 0
        while not self._stops.is_set():
            name = f"{self._topic}-{number}"
            self._await(admin.create_topics([kafka_admin.NewTopic(name, self._partitions, 1)]))
            self._await(admin.delete_topics([name]))
            admin.poll(0)
            number += 1

    def _await(self, asked: dict[str, Any]) -> None:
        for answer in asked.values():
            answer.result(ANSWER_SECONDS_MAX)
        self.taken += self._partitions


class KafkaPythonAdmin(Client):
    """kafka-python: so many topics made with one request, then deleted with one, and so on."""

    def __init__(self, bootstrap: str, topic: str, client_id: str, partitions: int, topics: int) -> None:
        self._bootstrap, self._topic, self._client_id = bootstrap, topic, client_id
        self._partitions, self._topics = partitions, topics
        super().__init__()

    def run(self) -> None:
        admin, number = KafkaAdminClient(bootstrap_servers=self._bootstrap, client_id=self._client_id), 0
        shape = {"num_partitions": self._partitions, "replication_factor": 1}
        while not self._stops.is_set():
            names = [f"{self._topic}-{number}-{of_request}" for of_request in range(self._topics)]
            self._until_done(lambda left: admin.create_topics(dict.fromkeys(left, shape), raise_errors=False), names)
            self._until_done(lambda left: admin.delete_topics(left, raise_errors=False), names)
            number += 1
        admin.close()

    def _until_done(self, ask: Callable[[list[str]], dict[str, Any]], names: list[str]) -> None:
        """Ask again for those that were refused for the quota."""
        left = names
        while left and not self._stops.is_set():
            try:
                codes = {topic["name"]: topic["error_code"] for topic in ask(left)["topics"]}
            except NodeNotReadyError:  # the client waits as long as it was told, and says so to whoever asks
                time.sleep(WAITING_SECONDS)
                continue
            left = [name for name in left if codes[name] == THROTTLING_QUOTA_EXCEEDED]
            self.taken += self._partitions * (len(codes) - len(left))
            if any(code not in {0, THROTTLING_QUOTA_EXCEEDED} for code in codes.values()):
                raise wire.WireError(f"a topic was answered with one of the errors {sorted(set(codes.values()))}")
