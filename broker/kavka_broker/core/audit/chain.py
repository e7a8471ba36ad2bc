"""A chain of audit entries: each one names the hash of the entry before it.

A node begins a chain when it starts; `source` names the node and that start. The entries of a chain are numbered from 0
without gaps, so that a missing entry is seen, and a changed one no longer has its hash.

Hashes alone stop nobody who can write all of them again. So the first entry is a head, and heads are added from time to
time and at the end: entries whose hash is signed by a key of the node (`keys`). Each names the cluster, so that no
chain is shown as one of another cluster that signs with the same key; the first one also names where the chains of the
node ended before (`heads`).

An event that could not be kept has no number. A loss says how many there were, where they would have been.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from struct import Struct
from typing import Final

from kavka_broker.core.audit.chain_ends import End
from kavka_broker.core.audit.heads import value_of
from kavka_broker.core.audit.keys import SigningKey

HASH_BYTES: Final = 32
NO_HASH: Final = bytes(HASH_BYTES)
"""What the first entry of a chain names as the hash before it."""
HEAD_MS: Final = 60_000
"""How long a chain goes on without a head."""
SEQUENCE_MAX: Final = 2**63 - 1
FIELDS: Final = Struct(">qqqI")  # the sequence, the time, the losses, the length of the source


class Kind(StrEnum):
    """What an entry is: an event, a number of lost events, a head, or the head after which none comes."""

    EVENT = "event"
    LOSS = "loss"
    HEAD = "head"
    END = "end"


SIGNED: Final = frozenset({Kind.HEAD, Kind.END})


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a chain. `hash` covers every other field except `signature`, which signs the hash."""

    source: str
    sequence: int
    kind: Kind
    time_ms: int
    value: bytes = b""
    lost: int = 0  # how many events a LOSS stands for
    previous: bytes = NO_HASH
    hash: bytes = b""
    signature: bytes = b""
    key_id: str = ""  # of the key that signed; no hash covers it

    def expected_hash(self) -> bytes:
        """Return the hash that the fields of this entry have: SHA-256, 32 bytes."""
        return hash_of(self.source, self.sequence, self.kind, self.time_ms, self.value, self.lost, self.previous)


def hash_of(source: str, sequence: int, kind: Kind, time_ms: int, value: bytes, lost: int, previous: bytes) -> bytes:
    """Return the hash of an entry with these fields: SHA-256, 32 bytes."""
    name = source.encode()
    fields = FIELDS.pack(sequence, time_ms, lost, len(name))
    # The value comes last, and only it and the source vary in length once the kind is padded: no two entries
    # have the same bytes.
    return sha256(b"".join((previous, fields, name, kind.encode().ljust(8), value))).digest()


class Chain:
    """The end of a chain that this node writes. `key` signs its heads; without one they have no signature. `cluster` is
    the id that they name; heads of older nodes named none.
    """

    __slots__ = ("_before", "_cluster", "_key", "_previous", "is_ended", "sequence", "source")

    def __init__(
        self, source: str, key: SigningKey | None = None, before: Sequence[End] = (), cluster: str = ""
    ) -> None:
        assert source, "a chain has a name"
        self.source = source
        self.sequence = 0  # of the next entry
        self.is_ended = False
        self._key = key
        self._before = tuple(before)
        self._cluster = cluster
        self._previous = NO_HASH

    def event(self, value: bytes, time_ms: int) -> Entry:
        """Add an event."""
        return self._add(Kind.EVENT, time_ms, value)

    def loss(self, lost: int, time_ms: int) -> Entry:
        """Add the number of events that were lost here."""
        assert lost > 0, lost
        return self._add(Kind.LOSS, time_ms, lost=lost)

    def head(self, time_ms: int) -> Entry:
        """Add a head, which vouches for all entries before it. As the first entry it names the ends before."""
        return self._add(Kind.HEAD, time_ms, value_of(self._cluster, None if self.sequence else self._before))

    def end(self, time_ms: int) -> Entry:
        """Add the last head. The chain takes no entry after it."""
        entry = self._add(Kind.END, time_ms, value_of(self._cluster, None if self.sequence else self._before))
        self.is_ended = True
        return entry

    def _add(self, kind: Kind, time_ms: int, value: bytes = b"", lost: int = 0) -> Entry:
        assert not self.is_ended, "an ended chain takes no entry"
        assert self.sequence < SEQUENCE_MAX, self.sequence
        source, sequence, previous = self.source, self.sequence, self._previous
        hash_ = hash_of(source, sequence, kind, time_ms, value, lost, previous)
        signature, key_id = b"", ""
        if self._key is not None and kind in SIGNED:
            signature, key_id = self._key.sign(hash_), self._key.id
        self.sequence, self._previous = sequence + 1, hash_
        return Entry(source, sequence, kind, time_ms, value, lost, previous, hash_, signature, key_id)
