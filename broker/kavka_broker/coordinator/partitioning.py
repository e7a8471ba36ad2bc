"""Which partition of `__consumer_offsets` holds a group: Java's hash of its name, as every Kafka broker computes it."""

from functools import lru_cache

from kavka_broker.core.client_names import NAME_CHARACTERS_MAX

HASHES_CACHED_MAX = 10_000


def java_hash(text: str) -> int:
    """`String.hashCode`: over UTF-16 units, in 32 bits with a sign."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for index in range(0, len(units), 2):
        value = (31 * value + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


_cached_hash = lru_cache(maxsize=HASHES_CACHED_MAX)(java_hash)


def partition_of(group_id: str, partition_count: int) -> int:
    """Return the partition of a group. Hashes of names that are longer than most are not kept: clients choose them."""
    value = (_cached_hash if len(group_id) <= NAME_CHARACTERS_MAX else java_hash)(group_id)
    # Java's abs of the smallest integer is negative; Kafka takes 0 instead.
    return 0 if value == -(1 << 31) else abs(value) % partition_count
