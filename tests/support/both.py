"""Kavka and Apache Kafka side by side: every answer of the one is compared with that of the other."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from kavka_broker.protocol.message import Message
from tests.support.asking import ask
from tests.support.servers import Server, start_apache_kafka, start_kavka

R = TypeVar("R", bound=Message)


@dataclass(frozen=True, slots=True)
class Both:
    kavka: Server
    kafka: Server

    def __iter__(self) -> Iterator[Server]:
        return iter((self.kavka, self.kafka))

    def ask(self, request: Message, kind: type[R], version: int | None = None) -> tuple[R, R]:
        """What each answers."""
        ours, theirs = (ask(server.address, request, kind, version) for server in self)
        return ours, theirs


@contextmanager
def running_both(directory: Path, settings: dict[str, str] | None = None, *, newest: bool = False) -> Iterator[Both]:
    """Run both; with `newest` Apache Kafka's newest release."""
    with ThreadPoolExecutor() as pool:
        kafka = pool.submit(start_apache_kafka, directory / "kafka", settings, newest=newest)
        kavka = start_kavka(directory / "kavka", settings)
        pair = Both(kavka, kafka.result())
    try:
        yield pair
    finally:
        pair.kavka.kill()
        pair.kafka.kill()
