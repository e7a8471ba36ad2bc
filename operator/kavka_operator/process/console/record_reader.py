"""Reads records of a topic in a process of its own, for the operator's page.

What producers have written decides how much memory a reader needs: a batch of a megabyte may hold a gigabyte once it is
unpacked. So it is read by a child, whose memory and time are bounded: a topic costs the operator no more than an answer
of bounded size, and no turn of its loop. The child gets credentials and query by its standard input, so that the list
of processes has none of them.
"""

import asyncio
import json
import resource
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from kavka_operator.domain.access import Origin, Security
from kavka_operator.kafka.admin import AdminError
from kavka_operator.live_views.records import SearchBounds, query_of, read_records

MODULE: Final = "kavka_operator.process.console.record_reader"
BOUNDS: Final = SearchBounds(
    scanned_max=20_000, bytes_max=16 * 1024 * 1024, seconds_max=10.0, fetch_bytes_max=1024 * 1024
)
MEMORY_BYTES_MAX: Final = 128 * 1024 * 1024
START_SECONDS_MAX: Final = 30.0
"""For which the child may take beside its search: its start, and the connections to brokers."""
ANSWER_BYTES_MAX: Final = 6 * 1024 * 1024
"""Of a document and its line's end. Those that have not been taken yet are all in the operator's memory."""
FOUND: Final = b'{"records": '
"""With which an answer that is no error begins."""
WORDS_LENGTH_MAX: Final = 500
NO_MEMORY: Final = (
    "the records need more memory than the operator's page may take; ask for fewer, or use `kavka consume`"
)
NO_ANSWER: Final = "the records were not read; try again, or ask for fewer"
NOT_STARTED: Final = "the process that reads records could not be started"
LATE: Final = "the brokers did not answer in time"

Document = dict[str, Any]
Fields = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Reading:
    """Bounds of a child: of its search, bytes of its memory, and seconds until it is ended."""

    search: SearchBounds = BOUNDS
    memory_bytes_max: int = MEMORY_BYTES_MAX
    seconds_max: float = BOUNDS.seconds_max + START_SECONDS_MAX


READING: Final = Reading()


async def read_apart(bootstrap: str, security: Security, fields: Fields, reading: Reading = READING) -> bytes:
    """Return the records that the fields of a form ask for, as JSON. Raises AdminError."""
    asked = {
        "bootstrap": bootstrap,
        "security": asdict(security),
        "fields": dict(fields),
        "bounds": asdict(reading.search),
        "memory": reading.memory_bytes_max,
    }
    child = await _started()
    try:
        async with asyncio.timeout(reading.seconds_max):
            assert child.stdin is not None, "it was asked for"
            assert child.stdout is not None, "it was asked for"
            child.stdin.write(json.dumps(asked).encode() + b"\n")
            line = await child.stdout.readline()
    except TimeoutError as error:
        raise AdminError(LATE, retriable=True) from error
    except (OSError, ValueError) as error:
        raise AdminError(NO_ANSWER, retriable=True) from error
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()
    return _answer(line)


async def _started() -> asyncio.subprocess.Process:
    """Start a child. Raises AdminError where the pod may have no more processes or files."""
    try:
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", MODULE, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL, limit=ANSWER_BYTES_MAX,
        )  # fmt: skip
    except OSError as error:
        raise AdminError(f"{NOT_STARTED}: {error.strerror}", retriable=True) from error


def _answer(line: bytes) -> bytes:
    """Return the document of a line, which is not parsed: that would hold up the loop. Raises AdminError where the
    child has one, or has not answered.
    """
    if line.startswith(FOUND) and line.endswith(b"}\n"):
        return line[:-1]
    try:
        words = str(json.loads(line)["error"])
    except (ValueError, LookupError, TypeError) as error:
        raise AdminError(NO_ANSWER, retriable=True) from error
    raise AdminError(words[:WORDS_LENGTH_MAX])


def answer(asked: Document) -> Document:
    """Return the answer of the child: the records, or an error in words."""
    security = Security(**{**asked["security"], "origin": Origin(**asked["security"]["origin"])})
    try:
        query = query_of(asked["fields"])
        return read_records(asked["bootstrap"], security, query, bounds=SearchBounds(**asked["bounds"]))
    except MemoryError:
        return {"error": NO_MEMORY}
    except (AdminError, ValueError) as error:
        return {"error": str(error)}


def main() -> None:
    """Answer the question on the standard input."""
    asked = json.loads(sys.stdin.buffer.readline())
    resource.setrlimit(resource.RLIMIT_DATA, (asked["memory"], asked["memory"]))
    sys.stdout.buffer.write(fitting(answer(asked)) + b"\n")
    sys.stdout.buffer.flush()


def fitting(found: Document, bytes_max: int = ANSWER_BYTES_MAX - 1) -> bytes:
    """Return the answer as JSON, without the last of its records where it would be too long."""
    while len(body := _json(found)) > bytes_max:
        records = found["records"]
        found = {**found, "records": records[: len(records) * bytes_max // (len(body) + 1)], "ended": "bytes"}
    return body


def _json(found: Document) -> bytes:
    return json.dumps(found, allow_nan=False, ensure_ascii=False).encode(errors="replace")


if __name__ == "__main__":
    main()
