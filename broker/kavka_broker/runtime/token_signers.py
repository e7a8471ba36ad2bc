"""The keys that sign tokens, as their issuer publishes them: read at the start, and again every while.

`sasl.oauthbearer.jwks.endpoint.url` is a file, or the page of an authorization server, which a thread asks. Where
nothing usable comes, the keys of before hold, the log says why, and it is asked again ever less often. A file has
to be there at the start. A server is asked beside the start, and the listeners of clients wait for it for
`ANSWER_SECONDS_MAX` at most; one that is away lets nobody in until it is back, and holds up nobody else.

The packages that judge signatures are imported by the thread that reads the first keys: a broker that judges no token
does not wait for them, and one without them does not start to judge.

An issuer may sign with a key newer than the last reading. A token by a key that is not known has the server asked
again, but not sooner than after `UNKNOWN_SECONDS_MIN`: strangers with tokens must not have it asked all the time.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final
from urllib.parse import unquote, urlsplit

from kavka_broker.core.authentication.signing_keys import KeySetError, SigningKey, lack, parse_keys
from kavka_broker.core.authentication.token_claims import TokenJudge
from kavka_broker.interfaces import Clock
from kavka_broker.logs import get
from kavka_broker.runtime.addresses import StartError

log = get("runtime")

ANSWER_SECONDS_MAX: Final = 10.0
"""The time of a whole answer, redirections included."""
BYTES_MAX: Final = 1024 * 1024
UNKNOWN_SECONDS_MIN: Final = 10.0

Fetch = Callable[[str], bytes]


def fetch(url: str) -> bytes:
    """What a file or a server has. Raises OSError and ValueError."""
    if urlsplit(url).scheme == "file":
        with open(unquote(urlsplit(url).path), "rb") as file:
            return file.read(BYTES_MAX)
    # Here, as few brokers ask a server, and importing takes a while.
    from kavka_broker.runtime.http_answer import answer_of

    return answer_of(url, seconds_max=ANSWER_SECONDS_MAX, bytes_max=BYTES_MAX)


class TokenSigners:
    """Keeps the keys of one judge up to date."""

    def __init__(
        self,
        judge: TokenJudge,
        clock: Clock,
        ask: Fetch = fetch,
        unknown_seconds_min: float = UNKNOWN_SECONDS_MIN,
    ) -> None:
        self._judge = judge
        self._clock = clock
        self._ask = ask
        self._unknown_seconds_min = unknown_seconds_min
        self._task: asyncio.Task[None] | None = None
        self._wanted = asyncio.Event()
        self._has_begun = asyncio.Event()
        self._asked_at = 0.0

    async def start(self) -> None:
        """Begin to read the keys, and keep reading. Raises StartError for a file that cannot be used, and
        where the packages lack that judge signatures.
        """
        if problem := lack():
            raise StartError(problem)
        url = self._judge.settings.keys_url
        is_file = urlsplit(url).scheme == "file"
        self._judge.keys_read_ms = self._clock.monotonic_ms()
        if is_file and (problem := await self._read()):
            raise StartError(f"sasl.oauthbearer.jwks.endpoint.url: {url}: {problem}")
        self._judge.on_unknown = self._wanted.set
        self._task = asyncio.create_task(self._run(is_read=is_file), name="keys of tokens")

    async def first_read(self) -> None:
        """Wait until the server has answered for the first time, or its time is over."""
        await self._has_begun.wait()

    async def stop(self) -> None:
        """Read no more."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self, *, is_read: bool) -> None:
        settings, loop = self._judge.settings, asyncio.get_running_loop()
        try:
            failures = 0 if is_read or not await self._read() else 1
        finally:
            self._has_begun.set()
        while True:
            retry_ms = min(settings.retry_ms * 2 ** min(failures - 1, 30), settings.retry_ms_max)
            # Not by wait_for, which takes a cancellation in the turn of the event for that. A retry is never put off.
            with suppress(TimeoutError):
                async with asyncio.timeout((retry_ms if failures else settings.refresh_ms) / 1000):
                    await self._wanted.wait()
                    await asyncio.sleep(max(0.0, self._asked_at + self._unknown_seconds_min - loop.time()))
            self._wanted.clear()
            failures = failures + 1 if await self._read() else 0

    async def _read(self) -> str:
        """Take over the keys that are there now; returns why that cannot be, or nothing."""
        url = self._judge.settings.keys_url
        self._asked_at = asyncio.get_running_loop().time()
        try:
            keys = await asyncio.to_thread(self._keys_at, url)
        except (ImportError, OSError, ValueError, KeySetError) as problem:
            log.error("token_keys.refused", url=url, reason=str(problem), keys=names(self._judge.keys))
            return str(problem)
        self._judge.keys_read_ms = self._clock.monotonic_ms()
        if keys != self._judge.keys:
            self._judge.keys = keys
            log.info("token_keys.read", url=url, keys=names(keys))
        return ""

    def _keys_at(self, url: str) -> tuple[SigningKey, ...]:
        """What is there now, read in a thread: the import takes a while. Raises what `fetch` and `parse_keys` raise."""
        return parse_keys(self._ask(url))


def names(keys: Iterable[SigningKey]) -> str:
    """The ids of keys, in words."""
    return ", ".join(key.key_id or "without an id" for key in keys) or "none"
