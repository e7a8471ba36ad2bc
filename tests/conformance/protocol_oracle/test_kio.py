"""A second opinion: kio, a Python implementation with classes of its own, reads and writes the same bytes.

kio gives values meaning (instants, durations, error codes, records) and refuses those without; so the numbers are
small and not negative, and records are empty.
"""

import importlib
import io
import pkgutil
from enum import Enum
from typing import Any

import kio.schema
import pytest
from kio.serial import entity_reader, entity_writer

from kavka_broker.protocol.codec import encode
from kavka_broker.protocol.message import Message
from tests.property.protocol.building import Seeded, build, every_message, versions

SEEDS = 3
NUMBER_MAX = 80


class Modest(Seeded):
    """Numbers that are valid as error codes, instants and durations alike."""

    def integer(self, low: int, high: int) -> int:
        return super().integer(max(low, 0), min(high, NUMBER_MAX))

    def real(self) -> float:
        return 1.5

    def records(self) -> bytes:
        return b""


def kio_classes() -> dict[tuple[str, int], Any]:
    """kio's classes by name and version."""
    found = {}
    for module in pkgutil.walk_packages(kio.schema.__path__, "kio.schema."):
        if not module.ispkg and ".v" in module.name:
            for name, kind in vars(importlib.import_module(module.name)).items():
                if is_whole_message(kind, module.name):
                    found[name, int(kind.__version__)] = kind
    return found


def is_whole_message(kind: Any, module: str) -> bool:
    if not isinstance(kind, type) or kind.__module__ != module:
        return False
    role = getattr(kind, "__type__", None)
    return isinstance(role, Enum) and role.name != "nested"


KIO = kio_classes()
OURS = [
    (kind, version) for kind in every_message() if kind.KIND in {"request", "response"} for version in versions(kind)
]
PAIRS = [
    pytest.param(kind, version, KIO[kind.NAME, version], id=f"{kind.NAME}-{version}")
    for kind in every_message()
    for version in versions(kind)
    if (kind.NAME, version) in KIO
]


def test_kio_knows_most_versions() -> None:
    known = [kind for kind, version in OURS if (kind.NAME, version) in KIO]
    assert len(known) > 0.9 * len(OURS) > 400


@pytest.mark.parametrize(("kind", "version", "kios"), PAIRS)
def test_kio_writes_what_it_read(kind: type[Message], version: int, kios: Any) -> None:
    for seed in range(SEEDS):
        ours = encode(build(kind, version, Modest(seed)), version)
        read, size = entity_reader(kios)(ours, 0)
        assert size == len(ours)
        written = io.BytesIO()
        entity_writer(kios)(written, read)
        assert written.getvalue() == ours
