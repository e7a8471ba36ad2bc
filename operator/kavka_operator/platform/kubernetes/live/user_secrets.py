"""Secrets of KafkaUsers, in the namespace of each: read by name, a part of them at a time, and written where ours.

They are neither listed nor watched, which would be a right to all Secrets of a namespace at once. So a Secret that
somebody changes or deletes is found at one of the next looks: with a hundred users at the next, with a thousand in ten.
A Secret belongs to its KafkaUser and goes with it, unless that retains what it has made.
"""

import asyncio
import base64
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kavka_operator.api import GROUP
from kavka_operator.api.stored_resources import part
from kavka_operator.api.user import KafkaUser
from kavka_operator.domain.observed import NoSecret
from kavka_operator.loop.passwords import Place, Stored, Written, place_of
from kavka_operator.platform.kubernetes.live.api import CONFLICT, GONE, Api, ApiError, Bridge, Document
from kavka_operator.platform.kubernetes.live.secrets import FORBIDDEN
from kavka_operator.platform.kubernetes.objects.names import MANAGED_BY, OPERATOR

USER = f"{GROUP}/user"
FRESH_SECONDS = 4.0  # less than a look is after the last
READS_MAX = 100
"""Secrets that are read again in one look, those that were read first; one that was never read is read at once."""
TOGETHER_MAX = 16

Result = TypeVar("Result")
Found = Stored | NoSecret


@dataclass(frozen=True, slots=True)
class _Read:
    """A Secret as it was read: when, its document, and what it says."""

    at: float
    found: Found
    document: Document = field(default_factory=dict, repr=False)


@dataclass(slots=True)
class KubernetesSecrets:
    """The `SecretStore` of one cluster."""

    api: Api
    bridge: Bridge
    clock: Callable[[], float]
    _read: dict[Place, _Read] = field(default_factory=dict, repr=False)

    outlives = False

    def words(self, place: Place) -> str:
        """The Secret for a person."""
        return f'Secret "{place[1]}"'

    def location(self, place: Place) -> str:
        """The name of the Secret, which is in the namespace of its KafkaUser."""
        return place[1]

    def read(self, places: Sequence[Place]) -> Mapping[Place, Found]:
        """These Secrets."""
        self._read = {place: self._read[place] for place in places if place in self._read}
        now = self.clock()
        new = [place for place in places if place not in self._read]
        stale = [place for place, read in self._read.items() if now - read.at >= FRESH_SECONDS]
        stale = sorted(stale, key=lambda place: self._read[place].at)[:READS_MAX]
        due = [*new, *stale]
        answers = self.bridge.wait(_all(self.api.find_secret(*place) for place in due)) if due else []
        for place, answer in zip(due, answers, strict=True):
            self._read[place] = self._taken(place, answer, now)
        return {place: self._read[place].found for place in places}

    def write(self, wanted: Sequence[Written]) -> list[str]:
        """Write Secrets; of each the words for why it could not be done."""
        bodies = [self._body(written) for written in wanted]
        answers = self.bridge.wait(_all(self.api.keep_secret(body) for body in bodies))
        return [self._noted(place_of(written.user), answer) for written, answer in zip(wanted, answers, strict=True)]

    def remove(self, place: Place) -> None:
        """Do nothing: the API server removes what belongs to an object that is gone."""

    def _taken(self, place: Place, answer: Document | ApiError, now: float) -> _Read:
        """The Secret as it was read; where that failed for a moment, as it was read before."""
        if not isinstance(answer, ApiError):
            return _Read(now, _stored(answer), answer)
        if answer.status == GONE:
            return _Read(now, NoSecret())
        if answer.status == FORBIDDEN:
            return _Read(now, NoSecret("SecretForbidden", f"{_forbidden(place, 'read')} ({answer})"))
        before = self._read.get(place)
        fault = NoSecret("SecretUnreadable", f"{self.words(place)} cannot be read: {answer}")
        return before if before is not None else _Read(0.0, fault)

    def _noted(self, place: Place, answer: Document | ApiError) -> str:
        """The words for why a Secret was not written; one that was is known from now on."""
        if not isinstance(answer, ApiError):
            self._read[place] = _Read(self.clock(), _stored(answer), answer)
            return ""
        self._read.pop(place, None)
        if answer.status == CONFLICT:
            return "somebody else has written it meanwhile"
        return f"{_forbidden(place, 'write')} ({answer})" if answer.status == FORBIDDEN else str(answer)

    def _body(self, written: Written) -> Document:
        """The Secret to write: what others have put into it stays."""
        user, place = written.user, place_of(written.user)
        read = self._read.get(place)
        before = read.document if written.version is not None and read is not None else {}
        was = part(before, "metadata")
        metadata = {
            **{key: value for key, value in was.items() if key != "managedFields"},
            "namespace": place[0],
            "name": place[1],
            "labels": {**part(was, "labels"), MANAGED_BY: OPERATOR},
            "annotations": {**part(was, "annotations"), USER: user.name},
            "ownerReferences": _owners(user, was),
        }
        data = {**part(before, "data"), **{key: _encoded(text) for key, text in written.texts.items()}}
        return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": data}


def _owners(user: KafkaUser, before: Mapping[str, Any]) -> list[Document]:
    """The owners of a Secret: others stay, and its KafkaUser is one unless it retains what it has made."""
    found = before.get("ownerReferences") or []
    others = [owner for owner in found if (owner.get("kind"), owner.get("name")) != (user.kind_name, user.name)]
    owner = {"apiVersion": user.api_version, "kind": user.kind, "name": user.name, "uid": user.metadata.uid}
    return others if user.spec.deletion_policy == "Retain" else [*others, owner]


def _stored(document: Document) -> Stored:
    metadata = part(document, "metadata")
    texts: dict[str, str] = {}
    for key, value in part(document, "data").items():
        with suppress(ValueError):  # what is no text is no password
            texts[key] = base64.b64decode(value).decode()
    is_ours = part(metadata, "labels").get(MANAGED_BY) == OPERATOR
    owner = part(metadata, "annotations").get(USER) if is_ours else None
    return Stored(texts, f"{metadata.get('uid')}/{metadata.get('resourceVersion')}", owner)


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _forbidden(place: Place, verb: str) -> str:
    namespace, name = place
    remedy = f"let it keep Secrets there, as the chart does with userSecrets: [{namespace}]"
    return f'the operator may not {verb} the Secret "{name}" in namespace "{namespace}"; {remedy}'


async def _all(work: Iterable[Coroutine[Any, Any, Document]]) -> list[Document | ApiError]:
    """The answers to requests, or why each was refused; some at a time."""
    room = asyncio.Semaphore(TOGETHER_MAX)

    async def answer(request: Coroutine[Any, Any, Document]) -> Document | ApiError:
        async with room:
            try:
                return await request
            except ApiError as error:
                return error

    return list(await asyncio.gather(*map(answer, work)))
