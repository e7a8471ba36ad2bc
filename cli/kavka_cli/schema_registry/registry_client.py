"""Fetches schemas from a registry with Confluent's HTTP API: its own, Karapace, or Apicurio's `apis/ccompat/v7`.

An answer is read up to a bound of bytes and of time, and a registry that did not answer is left alone for a while, so
that it holds up the reading of records for one timeout and not for one a record. What concerns one schema alone
(SchemaError) does not. A registry never redirects: what it names is not followed.
"""

import base64
import http.client
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

T = TypeVar("T")

REGISTRY_VARIABLE: Final = "KAVKA_REGISTRY"
"""The environment variable with the URL: other users see the words of a command, and a password among them."""
TIMEOUT_SECONDS: Final = 5.0
ANSWER_SECONDS_MAX: Final = 10.0
ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024
RETRY_SECONDS: Final = 10.0
REFERENCES_MAX: Final = 64
NOT_FOUND: Final = 404
OF_THE_REGISTRY: Final = (401, 429, 502, 503, 504)
"""Codes that hold for whatever it is asked; others are about the one schema."""


class RegistryError(Exception):
    """A registry has not told a schema; the message says why."""


class SchemaError(RegistryError):
    """A schema cannot be had from a registry that may have others."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A schema that another one names: by a file's name for Protobuf, by the type's name for Avro."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema as it is registered. `references` are in an order in which each stands behind those that it names."""

    id: int
    kind: str
    text: str
    references: tuple[Reference, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"


class RegistryClient:
    """The registry at a URL, which may hold a user and a password. Raises RegistryError for what is no such URL."""

    def __init__(
        self,
        url: str,
        clock: Callable[[], float] = time.monotonic,
        open_url: Callable[..., Any] | None = None,
        answer_seconds_max: float = ANSWER_SECONDS_MAX,
        answer_bytes_max: int = ANSWER_BYTES_MAX,
    ) -> None:
        parts = _parts(url)
        host = parts.netloc.rpartition("@")[2]
        self.url = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
        self._open_url = open_url or urllib.request.build_opener(_NoRedirects).open
        self._answer_seconds_max = answer_seconds_max
        self._answer_bytes_max = answer_bytes_max
        self._clock = clock
        self._failure: tuple[float, str] | None = None  # until when the registry is left alone, and why

    def schema(self, schema_id: int) -> Schema:
        """Fetch a schema, and those that it names, all within one time. Raises RegistryError."""
        try:
            return in_time(lambda: self._schema(schema_id), self._answer_seconds_max)
        except TimeoutError as error:
            raise self._failed(f"{self.url} does not answer: {error}") from None

    def _schema(self, schema_id: int) -> Schema:
        found = self._ask(f"/schemas/ids/{schema_id}", f"schema {schema_id}")
        kind, text = found.get("schemaType") or "AVRO", found.get("schema")
        if not isinstance(text, str) or not isinstance(kind, str):
            raise SchemaError(f"{self.url}: the answer about schema {schema_id} has no schema")
        seen: dict[tuple[str, int], None] = {}
        return Schema(schema_id, kind, text, tuple(self._references(found, seen)))

    def _references(self, found: dict[str, Any], seen: dict[tuple[str, int], None]) -> Iterator[Reference]:
        for named in found.get("references") or ():
            try:
                name, subject, version = str(named["name"]), str(named["subject"]), int(named["version"])
            except (KeyError, TypeError, ValueError):
                raise SchemaError(f"{self.url}: a reference without name, subject and version") from None
            if (subject, version) in seen:
                continue
            seen[subject, version] = None
            if len(seen) > REFERENCES_MAX:
                raise SchemaError(f"{self.url}: a schema with more than {REFERENCES_MAX} references")
            place = f"/subjects/{quote(subject, safe='')}/versions/{version}"
            inner = self._ask(place, f"version {version} of {subject}")
            if not isinstance(inner.get("schema"), str):
                raise SchemaError(f"{self.url}: the answer about {subject} has no schema")
            yield from self._references(inner, seen)
            yield Reference(name, inner["schema"])

    def _ask(self, path: str, what: str) -> dict[str, Any]:
        if self._failure is not None and self._clock() < self._failure[0]:
            raise RegistryError(self._failure[1])
        try:
            body = self._fetch(path)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == NOT_FOUND:
                raise SchemaError(f"{self.url} has no {what}") from None
            words = f"{self.url} answers {error.code} {error.reason}"
            raise self._failed(words) if error.code in OF_THE_REGISTRY else SchemaError(f"{words} to {what}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._failed(f"{self.url} does not answer: {getattr(error, 'reason', error)}") from None
        if len(body) > self._answer_bytes_max:
            raise SchemaError(f"{self.url}: {what} is larger than {self._answer_bytes_max >> 20} MiB")
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            raise self._failed(f"{self.url} answers what is not JSON; is it a schema registry?") from None
        if not isinstance(found, dict):
            raise self._failed(f"{self.url} answers what is not an object; is it a schema registry?")
        return found

    def _fetch(self, path: str) -> bytes:
        request = urllib.request.Request(self.url + path, headers=self._headers)  # noqa: S310 - the scheme is checked
        with self._open_url(request, timeout=TIMEOUT_SECONDS) as answer:
            body: bytes = answer.read(self._answer_bytes_max + 1)
            return body

    def _failed(self, words: str) -> RegistryError:
        self._failure = (self._clock() + RETRY_SECONDS, words)
        return RegistryError(words)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Make an error of a redirect."""

    def redirect_request(self, *_: Any) -> None:
        """Follow none."""


def in_time(work: Callable[[], T], seconds_max: float) -> T:
    """The result of work that waits for another, or its error. Raises TimeoutError; the thread then goes on without us:
    a timeout of a socket is for each piece, and there may be many.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - raised for the one who waits
            errors.append(error)

    thread = threading.Thread(target=run, name="schema registry", daemon=True)
    thread.start()
    thread.join(seconds_max)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError(f"not within {seconds_max:.0f} s")
    return results[0]


def _parts(url: str) -> SplitResult:
    """The parts of an address. Raises RegistryError, whose words have no password."""
    parts = None
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if parts is None or not is_address or "@" in parts.path:
        raise RegistryError(
            "--registry: not the URL of a registry; write http://HOST:PORT, and %40, %3A and %2F in a password"
        )
    return parts
