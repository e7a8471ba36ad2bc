"""The newest offset of each key, in a table of a fixed size.

An entry takes 24 bytes: a hash of the key of 16 and the offset of 8, whatever the key's length. Two keys of one hash
would be taken for one, and the older of them lost; with 128 bits of BLAKE2 that does not happen, nor can anybody make
it happen. The table is memory of its own, which the system gives page by page as it is used and takes back as a whole
on `close`; a Python dict of as many keys would take five times as much.

A slot is looked for by double hashing, so the number of slots is a prime.
"""

import mmap
from hashlib import blake2b
from struct import Struct
from typing import Final

ENTRY_BYTES: Final = 24
HASH_BYTES: Final = 16
#: A table has room for at least this many keys, otherwise a run would not come forward.
SLOTS_MIN: Final = 11
LOAD_FACTOR_MIN: Final = 0.01
#: A map is one stretch of memory, and no larger than Kafka's.
BYTES_MAX: Final = 2**31 - 1
_HALVES: Final = Struct(">QQ")
# The hash, and the offset plus one, so that a slot of zeros is free.
_ENTRY: Final = Struct(">16sq")
assert _ENTRY.size == ENTRY_BYTES, _ENTRY.size
assert _HALVES.size == HASH_BYTES, _HALVES.size


class OffsetMap:
    """Keys and their newest offsets. `latest_offset` is the offset up to which its user has looked."""

    __slots__ = ("_memory", "entries_max", "latest_offset", "size", "slots")

    def __init__(self, bytes_max: int, load_factor: float, keys_max: int) -> None:
        """A table for `keys_max` keys, or for as many as go into `bytes_max` at that load."""
        load_factor = min(max(LOAD_FACTOR_MIN, load_factor), 1.0)  # any number, by the config
        wanted = int(keys_max / load_factor) + SLOTS_MIN
        self.slots = prime_below(max(SLOTS_MIN, min(wanted, min(bytes_max, BYTES_MAX) // ENTRY_BYTES)))
        self.entries_max = max(1, min(int(self.slots * load_factor), self.slots - 1))
        assert 0 < self.entries_max < self.slots
        self.size = 0
        self.latest_offset = -1
        self._memory = mmap.mmap(-1, self.slots * ENTRY_BYTES)

    @property
    def is_full(self) -> bool:
        return self.size >= self.entries_max

    @property
    def utilization(self) -> float:
        return self.size / self.slots

    def put(self, key: bytes, offset: int) -> None:
        """Take note of a newer record of the key. The map is not full, or knows the key."""
        digest = blake2b(key, digest_size=HASH_BYTES).digest()
        at, known = self._slot(digest)
        if known < 0:
            assert self.size < self.slots - 1, "a full offset map"
            self.size += 1
        _ENTRY.pack_into(self._memory, at, digest, offset + 1)
        self.latest_offset = offset

    def get(self, key: bytes) -> int:
        """Return the newest offset of the key; -1 where the key is not known."""
        return self._slot(blake2b(key, digest_size=HASH_BYTES).digest())[1]

    def _slot(self, digest: bytes) -> tuple[int, int]:
        """Return the place of the hash's entry, and its offset; where it would be, and -1."""
        memory, slots = self._memory, self.slots
        first, second = _HALVES.unpack(digest)
        index, step = first % slots, 1 + second % (slots - 1)
        while True:
            at = index * ENTRY_BYTES
            known, offset = _ENTRY.unpack_from(memory, at)
            if known == digest or not offset:
                return at, offset - 1
            index = (index + step) % slots

    def close(self) -> None:
        """Give the memory back."""
        self._memory.close()


def prime_below(number: int) -> int:
    """Return the largest prime that is not above `number`, which is 2 or more."""
    assert number >= 2
    while any(number % divisor == 0 for divisor in range(2, int(number**0.5) + 1)):
        number -= 1
    return number
