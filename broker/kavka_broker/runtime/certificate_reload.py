"""Certificates that change on the disk: new connections use the new ones, and those that stand keep theirs.

The files that the configuration names are looked at every few seconds, through symbolic links, by which secrets come to
pods. A change is read as a whole before anything takes it over; where it cannot be used the log says why, and
what was in use stays. Apache Kafka does the same when the keys are altered (KIP-226); here a new file is enough.
"""

import asyncio
import os
from collections.abc import Sequence
from typing import Final

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.unserved_configs import plain_name
from kavka_broker.logs import get
from kavka_broker.net.outbound import Outbound
from kavka_broker.net.outbound_login import Introduction
from kavka_broker.runtime.addresses import Addresses, Contexts, StartError, introduction_of, links_of

log = get("runtime")

LOOK_SECONDS: Final = 5.0
FILES: Final = ("ssl.keystore.location", "ssl.truststore.location")

#: By path: what tells that a file is another one, or empty where it cannot be looked at.
Look = dict[str, tuple[int, ...]]


class Renewal:
    """Looks at the files of one node. `outbounds` are those of `links_of`, in its order."""

    def __init__(self, config: BrokerConfig, addresses: Addresses, outbounds: Sequence[Outbound]) -> None:
        self._config = config
        self._addresses = addresses
        self._outbounds = outbounds
        self.files = tuple(sorted({text for name, text in config.given.items() if plain_name(name) in FILES and text}))
        self._seen = looked_at(self.files)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look from now on, where the configuration names files at all."""
        if self.files:
            self._task = asyncio.create_task(self._run(), name="renewal of certificates")

    async def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Take over what has changed since the last look; the files are read in a thread."""
        seen = await asyncio.to_thread(looked_at, self.files)
        if seen == self._seen:
            return
        self._seen = seen
        try:
            contexts, introductions = await asyncio.to_thread(self._read)
        except StartError as problem:
            log.error("certificate.refused", reason=str(problem), used="what was in use before")
            return
        self._addresses.speak(contexts)
        for outbound, introduction in zip(self._outbounds, introductions, strict=True):
            outbound.introduction = introduction
        log.info("certificate.renewed", files=",".join(self.files))

    def _read(self) -> tuple[Contexts, list[Introduction]]:
        return self._addresses.contexts(), [introduction_of(link) for link in links_of(self._config)]


def looked_at(files: Sequence[str]) -> Look:
    """What tells that a file is another one: its inode, size and time."""
    return {path: _state(path) for path in files}


def _state(path: str) -> tuple[int, ...]:
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return (found.st_ino, found.st_size, found.st_mtime_ns)
