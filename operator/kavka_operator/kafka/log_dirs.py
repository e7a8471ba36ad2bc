"""How full the volumes of brokers are, as each tells of its own (DescribeLogDirs, KIP-827)."""

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

import kafka.errors
from kafka.protocol.admin import DescribeLogDirsRequest

from kavka_operator.domain.observed import SeenDisk

Send = Callable[[Any, int], Any]
"""Sends a request to a broker, by its id."""


def disks(send: Send, brokers: Iterable[int]) -> dict[int, tuple[SeenDisk, ...]]:
    """The disks by broker; a broker that does not answer, or may not be asked, is left out."""
    found = {}
    for broker in brokers:
        with contextlib.suppress(kafka.errors.KafkaError, OSError):
            answer = send(DescribeLogDirsRequest(topics=[]), broker)  # the directories alone, without their replicas
            found[broker] = tuple(map(_disk, answer.results))
    return found


def _disk(result: Any) -> SeenDisk:
    total, usable = getattr(result, "total_bytes", -1), getattr(result, "usable_bytes", -1)
    is_told = total is not None and usable is not None and 0 <= usable <= total and total > 0
    return SeenDisk(result.log_dir, total if is_told else None, usable if is_told else None, not result.error_code)
