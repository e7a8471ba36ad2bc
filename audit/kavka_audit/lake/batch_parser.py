"""Usual events of whole batches, as columns: what `fast_parser` finds in one record, found in all of a batch at once.

An expression here matches a record as it stands in a batch: its length, its place in the batch, the key of a broker or
none, a value in one of the usual forms, and the headers of a broker. So nothing is taken apart that an expression has
found already. What the groups hold goes into a file of columns between tabs, one file for each form, and DuckDB makes
rows of it. A text that may be missing stands there in quotation marks, so that one that is empty is told from none.

It is as strict as `fast_parser`: each length is checked against what it is the length of, and a record that does not
match, or that ends before it began, is left to be taken apart. Records stand one behind the other in a batch, so that
the first that is left ends a run of the others.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import duckdb

from kavka_audit.lake.chain_steps import Links
from kavka_audit.lake.columns import ENTRIES
from kavka_audit.lake.fast_parser import ACTIVITY, CHANGE, COMMON, HEADERS, LOGIN, USE, pattern
from kavka_audit.lake.rows import LOGINS, OUTCOMES, REQUESTS

PLACES_MAX: Final = 1 << 16
"""Records of a batch, and bytes of a record, up to which a number is known as it stands in a batch."""
SHORT: Final = r"[\x80-\xff]?[\x00-\x7f]"
PLACE: Final = r"[\x80-\xff]{0,2}[\x00-\x7f]"
LONG: Final = r"[\x80-\xff]{0,9}[\x00-\x7f]"
NO_ATTRIBUTES, NO_KEY = r"\x00", b"\x01"
KEY: Final = r"([\x01-\x7f])((?:[0-9]{1,9}-[0-9]{1,20})?)"
"""The length of a key, and the key: the source of a broker's chain."""
LENGTHS: Final = 5
"""The first groups of an expression: the length of a record, its place, the length of its key, the key, and the length
of its value.
"""
VALUE_END: Final = "value_end"
"""A group of no length, where the value ends."""
PLAIN: Final = ACTIVITY + CHANGE + COMMON
"""What is refused or changed. What is throttled, of which there is less, is left to `fast_parser`."""
TAIL_BYTES: Final = len("content-type") + len("application/json") + 2
"""What stands in a record behind the digits of its hash."""
DIGITS: Final = 64
BETWEEN_BYTES: Final = len("ce_chainhash") + 3
"""What stands between the digits of the hash before and those of its own."""
PLACES: Final = ("start_ms", "end_ms", "written_ms", "lost", "source", "sequence")
"""Fields that are looked at for each event."""
NUMBERS: Final = ("disposition", "status")
ACTIVITIES: Final = {
    "class_uid": f"{REQUESTS}",
    "outcome": f"CASE disposition {' '.join(f'WHEN {number} THEN {name!r}' for number, name in OUTCOMES.items())} END",
    "principal": "coalesce(user_type, '') || ':' || coalesce(\"user\", '')",
}
LOGGED_IN: Final = {
    "class_uid": f"{LOGINS}",
    "outcome": "CASE status WHEN 1 THEN 'allowed' ELSE 'denied' END",
    "operation": "'LOGIN'",
    "principal": "CASE status WHEN 1 THEN 'User:' || coalesce(\"user\", '') END",
    "resource_type": "'listener'",
    "resource": "coalesce(listener, '')",
}


def _packed(number: int) -> bytes:
    """Return a number as a zigzag varint."""
    rest, found = 2 * number, bytearray()
    while rest > 127:
        found.append(rest & 127 | 128)
        rest >>= 7
    return bytes((*found, rest))


PACKED: Final = {number: _packed(number) for number in range(PLACES_MAX)}


class Form:
    """A form of events. `derived` are columns that are not a group of their name, as SQL over the groups."""

    def __init__(self, value: str, derived: Mapping[str, str]) -> None:
        place = f"({SHORT}){NO_ATTRIBUTES}{LONG}({PLACE}){KEY}({SHORT})"
        record = f"{place}{pattern(value)}(?P<{VALUE_END}>){HEADERS.pattern}"
        self.record = re.compile(record.encode("latin-1"))
        self.names = sorted(self.record.groupindex, key=lambda name: self.record.groupindex[name])
        assert self.record.groups == LENGTHS + len(self.names), "every group behind the lengths has a name"
        self._value_group = self.record.groupindex[VALUE_END]
        self._places = [self.record.groupindex[name] - 1 for name in PLACES]
        self._derived = derived

    def run(
        self,
        packed: bytes,
        begun: tuple[int, int],
        count: int,
        base_offset: int,
        lines: list[bytes],
        links: Links | None = None,
    ) -> tuple[int, int]:
        """Find events of this form, one behind the other, from a place in a batch on, with so many bytes and records
        before it; returns the place of the first record that is none. Each event becomes a line, and a link of its
        chain, if these are wanted.
        """
        (at, index), match, known, value_group = begun, self.record.match, PACKED.get, self._value_group
        start, end, written, lost, source, sequence = self._places
        while index < count and (found := match(packed, at)) is not None:
            fields, over = found.groups(b""), found.end()
            value_at, value_end = found.end(LENGTHS), found.end(value_group)
            if (
                fields[0] != known(over - found.end(1))
                or fields[1] != known(index)
                or fields[2] != (known(len(fields[3])) if fields[3] else NO_KEY)
                or fields[4] != known(value_end - value_at)
                # It did not begin after its end, nor end after it was written. Numbers of as many digits compare as
                # texts; any others are left to `fast_parser`.
                or not len(fields[start]) == len(fields[end]) == len(fields[written])
                or not fields[start] <= fields[end] <= fields[written]
            ):
                break
            if links is not None:
                if fields[lost] != b"0":  # an event that says of itself that others were lost
                    break
                own = over - TAIL_BYTES
                before = own - DIGITS - BETWEEN_BYTES
                hashes = packed[before - DIGITS : before], packed[own - DIGITS : own]
                numbers = int(fields[sequence]), int(fields[written])
                links.add_event(base_offset + index, fields[source], numbers, hashes, packed[value_at:value_end])
            lines.append(b"%d\t%b\n" % (base_offset + index, b"\t".join(fields[LENGTHS:])))
            at, index = over, index + 1
        return at, index

    def rows(self, connection: duckdb.DuckDBPyConnection, partition: int, file: Path) -> duckdb.DuckDBPyRelation:
        """Return the rows of a file with lines of events, all of one partition."""
        kinds = {name: "BIGINT" if name in NUMBERS else ENTRIES.get(name, "VARCHAR") for name in self.names}
        read = connection.read_csv(
            str(file),
            columns={"offset": "BIGINT", **kinds},
            auto_detect=False,
            header=False,
            delimiter="\t",
            quotechar='"',
            escapechar='"',
            na_values="",
            allow_quoted_nulls=False,
            parallel=False,
        )
        own = {"partition": f"{partition}", "kind": "'event'", **self._derived}
        there = {"offset", *self.names}
        found = {name: own.get(name, f'"{name}"' if name in there else "NULL") for name in ENTRIES}
        return read.project(", ".join(f'CAST({found[name]} AS {kind}) AS "{name}"' for name, kind in ENTRIES.items()))


FORMS: Final = (Form(USE, ACTIVITIES), Form(PLAIN, ACTIVITIES), Form(LOGIN, LOGGED_IN))
