"""The records that every client produces, and what it means to have resumed."""

COUNT = 200
FIRST_PART = 120
PARTITIONS = 3
RECORDS = [(f"key-{number % 7}", f"value-{number:03}") for number in range(COUNT)]

Pair = tuple[str, str]


def assert_resumed(first: list[Pair], rest: list[Pair]) -> None:
    """The second member went on where the first had committed: every record once, the order of each key kept."""
    assert len(first) == FIRST_PART
    assert sorted([*first, *rest]) == sorted(RECORDS)
    by_key: dict[str, list[str]] = {}
    for key, value in [*first, *rest]:
        by_key.setdefault(key, []).append(value)
    for key, values in by_key.items():
        assert values == sorted(values), f"the order of {key} is not that of its producer"
