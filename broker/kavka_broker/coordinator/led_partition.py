"""What groups need of the partition of `__consumer_offsets` that they stand in: `replica` gives it."""

import asyncio
from typing import Protocol

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.storage.log import Appended, Origin
from kavka_broker.storage.log_reading import Chunk


class LoadableLog(Protocol):
    """The log of a partition, as loading reads it."""

    @property
    def log_start_offset(self) -> int: ...
    @property
    def log_end_offset(self) -> int: ...
    @property
    def config(self) -> LogConfig: ...


class LoadablePartition(Protocol):
    """A partition whose groups are loaded when the broker becomes its leader."""

    @property
    def log(self) -> LoadableLog: ...

    def read(self, offset: int, bytes_max: int, upper_offset: int, at_least_one: bool) -> Chunk: ...


class LedPartition(LoadablePartition, Protocol):
    """A partition to which the coordinator appends once it is loaded."""

    @property
    def index(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...

    def append(self, batches: memoryview, acks: int, origin: Origin, /) -> Appended: ...

    def when_committed(self, offset: int, /) -> asyncio.Future[None] | None: ...
