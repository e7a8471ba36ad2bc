"""Java's hash of strings, by values that Java gives."""

import pytest

from kavka_broker.coordinator.partitioning import java_hash, partition_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("my-group", -1906497762),
        ("polygenelubricants", -(2**31)),
        ("ž", 382),
        ("\U0001f426", 1772425),  # two UTF-16 units
    ],
)
def test_the_hash_of_a_text_is_javas(text: str, expected: int) -> None:
    assert java_hash(text) == expected


def test_partition_of_the_smallest_hash_is_zero() -> None:
    assert partition_of("polygenelubricants", 50) == 0


def test_partition_is_of_the_absolute_hash() -> None:
    assert partition_of("my-group", 50) == 1906497762 % 50
