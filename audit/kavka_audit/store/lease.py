"""Which run may write to a lake in a store: the one that holds the lease, an object that the store itself guards.

The object is made where there is none (If-None-Match) and changed only by a run that has read it as it is (If-Match),
so that of two runs one gets it. Its holder changes it every few seconds. Another run watches it by its own clock: one
that changes is held, and the other run ends; one that has not changed for LEASE_SECONDS belongs to a run that died, and
is taken. Clocks of two machines are never compared.

A run asks `check` before each request that changes something. It renews the lease where the last renewal is RENEWED_MAX
old, and no request takes longer than what is left, so that a run that has lost the lease writes nothing any more. What
remains is a process that stands still in the middle of a request and wakes up after LEASE_SECONDS: the files that it
leaves then overlap with others, which the next run finds and names (`mirror`).

A store that makes or changes the object whatever was there guards nothing. It is asked for both, and is refused.
"""

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from kavka_audit.store.objects import Store, StoreError

KEY: Final = "lease.json"
LEASE_SECONDS: Final = 120.0
RENEWED_MAX: Final = 0.25
"""The part of the time after which a request first renews the lease."""
RENEWALS: Final = 6
"""How often the lease is renewed in its time."""
WRONG_TAG: Final = f'"{"0" * 32}"'
Clock = Callable[[], float]


class Lease:
    """The right of one run to write."""

    def __init__(
        self,
        store: Store,
        name: str,
        holder: str,
        lease_seconds: float = LEASE_SECONDS,
        clock: Clock = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`name` is that of the lake and `holder` that of this machine, both for people."""
        self._store, self._name, self._holder = store, name, holder
        self._seconds, self._clock, self._sleep = lease_seconds, clock, sleep
        self._run, self._count, self._tag = uuid.uuid4().hex, 0, ""
        self._renewed_at, self._is_lost = 0.0, False
        self._lock, self._over = threading.Lock(), threading.Event()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lease; waits for the end of one whose run died. Raises StoreError where another run has it."""
        self._take()
        self._probe()
        renewing = threading.Thread(target=self._renew_on, name="lease", daemon=True)
        renewing.start()
        try:
            yield
        finally:
            self._over.set()
            with self._lock:
                self._release()

    def check(self) -> None:
        """Raise StoreError unless this run has the lease for as long as a request may take."""
        with self._lock:
            if self._clock() - self._renewed_at > self._seconds * RENEWED_MAX and (problem := self._renew()):
                raise problem
            if self._is_lost:
                words = f"this one has told nothing for {self._seconds:.0f} s; run again, what is there counts once"
                raise StoreError(f"another run has taken {self._name}, as {words}")

    def _take(self) -> None:
        first, since = "", 0.0
        while True:
            self._renewed_at = self._clock()
            tag = self._store.create(KEY, self._text())
            found = self._store.read(KEY) if tag is None else None
            if found is not None:
                if not first:
                    first, since = found[1], self._clock()
                is_same = found[1] == first
                tag = self._taken(found, is_over=is_same and self._clock() - since >= self._seconds)
                if tag is None and not is_same:
                    host = _of(found[0]).get("host", "another machine")
                    raise StoreError(f"another run holds {self._name} (on {host}); wait for its end")
            if tag is not None:
                self._tag = tag
                return
            self._sleep(self._seconds / RENEWALS)

    def _taken(self, found: tuple[bytes, str], *, is_over: bool) -> str | None:
        """Return the tag of the lease where it is this run's, or can be: it is free, or its run died."""
        data, tag = found
        if data == self._text():
            return tag  # made by this run, whose answer got lost
        is_free = not _of(data).get("held", True)
        return self._replaced(tag) if is_free or is_over else None

    def _probe(self) -> None:
        """Raise StoreError where the store does not guard the lease."""
        if self._store.create(KEY, self._text()) is None and self._store.replace(KEY, self._text(), WRONG_TAG) is None:
            return
        words = "If-None-Match and If-Match, without which two runs could hurt each other"
        raise StoreError(f"the store of {self._name} does not know the conditions {words}; use another, or a directory")

    def _renew_on(self) -> None:
        while not self._over.wait(self._seconds / RENEWALS):
            with self._lock:
                self._renew()

    def _renew(self) -> StoreError | None:
        """Change the object, by which others see that this run goes on; returns why that is not known to be done."""
        if self._is_lost:
            return None
        began = self._clock()
        self._count += 1
        try:
            tag = self._replaced(self._tag)
        except StoreError as problem:
            return problem
        if tag is None:
            self._is_lost = True
        else:
            self._tag, self._renewed_at = tag, began
        return None

    def _replaced(self, tag: str) -> str | None:
        """Write what this run says in the place of what has this tag; None where another was first."""
        text = self._text()
        new = self._store.replace(KEY, text, tag)
        if new is None and (found := self._store.read(KEY)) is not None and found[0] == text:
            return found[1]  # the answer to the first attempt got lost
        return new

    def _release(self) -> None:
        if self._is_lost:
            return
        try:
            self._store.replace(KEY, self._text(is_held=False), self._tag)
        except StoreError:
            return  # the next run waits until the lease is over

    def _text(self, *, is_held: bool = True) -> bytes:
        told = {"held": is_held, "host": self._holder, "run": self._run, "count": self._count}
        return json.dumps(told).encode()


def _of(data: bytes) -> dict[str, object]:
    """Return what a lease says; nothing where no run has written it."""
    try:
        found = json.loads(data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
