"""Whatever strangers send, it is answered or refused, and nothing else happens. 100,000 inputs of a kind:

    python -m tests.property.hostile.test_any_input KIND 100000

Without a kind it names them.
"""

import asyncio
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tests.property.hostile import logins, requests
from tests.property.hostile.parsers import READERS, Tokens
from tests.support.drawn import commit

REQUESTS, LOGINS, READ = 500, 300, 300
ANSWERED_SHARE_MIN: Final = 0.7
ROUND: Final = 1_000
#: Requests by who sends them, and to which kind of listener. A node's requests by one that may send them have tests of
#: their own (`tests/property/metadata/test_extreme_fields.py`).
SENDERS: Final[Mapping[str, Callable[[Path, range], Counter[str]]]] = {
    name: lambda directory, numbers, role=role, may=may: asyncio.run(  # type: ignore[misc]
        requests.play(directory, numbers, role, with_rights=may)
    )
    for name, role, may in (
        ("requests", "broker", True),
        ("requests without rights", "broker", False),
        ("requests to a controller without rights", "controller", False),
    )
}


def drawn(count: int) -> range:
    """Numbers of inputs that another commit does not draw."""
    first = int(commit()[:6], 16) * count
    return range(first, first + count)


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Tokens:
    return Tokens(tmp_path_factory.mktemp("keys"))


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR or record.exc_info]


@pytest.mark.parametrize("sender", SENDERS)
def test_any_request_is_answered_or_its_connection_closed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, sender: str
) -> None:
    counts = SENDERS[sender](tmp_path, drawn(REQUESTS))
    assert counts["answered"] > ANSWERED_SHARE_MIN * REQUESTS
    assert not errors(caplog)


def test_any_login_is_answered_or_its_connection_closed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    counts = asyncio.run(logins.play(tmp_path, drawn(LOGINS)))
    assert min(counts[name] for name in ("closed", "answered", "proved", "metadata")) > 0
    assert not errors(caplog)


@pytest.mark.parametrize("name", READERS)
def test_any_bytes_are_read_or_refused(tokens: Tokens, name: str) -> None:
    for number in drawn(READ):
        READERS[name](tokens, Random(f"{name} {number}"))


def main() -> None:
    """Play so many inputs of one kind, in rounds, and print what came of them."""
    logging.basicConfig(level=logging.ERROR)
    if len(sys.argv) < 3:
        sys.exit("kinds: " + ", ".join((*SENDERS, "logins", *READERS)))
    kind, count = sys.argv[1], int(sys.argv[2])
    total: Counter[str] = Counter()
    for begin in range(0, count, ROUND):
        numbers = range(begin, min(count, begin + ROUND))
        with tempfile.TemporaryDirectory() as scratch:
            total += play(kind, Path(scratch), numbers)
    print(f"{kind}:", dict(total.most_common(4)))


def play(kind: str, directory: Path, numbers: range) -> Counter[str]:
    """Play inputs of one kind; what came of them."""
    if kind in SENDERS:
        return SENDERS[kind](directory, numbers)
    if kind == "logins":
        return asyncio.run(logins.play(directory, numbers))
    tokens = Tokens(directory)
    for number in numbers:
        READERS[kind](tokens, Random(f"{kind} {number}"))
    return Counter({"read or refused": len(numbers)})


if __name__ == "__main__":
    main()
