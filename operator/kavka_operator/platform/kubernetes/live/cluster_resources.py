"""The resources of one cluster, read from what the watch has seen and written to the API server."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kavka_operator.api import GROUP
from kavka_operator.api.field_names import fields_by_key
from kavka_operator.api.kinds import AnyResource, Key, key_of
from kavka_operator.api.stored_resources import Unreadable, UnreadableError, part, resource_from
from kavka_operator.platform.kubernetes.live.api import CONFLICT, GONE, Api, ApiError, Bridge, Document
from kavka_operator.platform.kubernetes.live.resource_cache import ClusterKey, Objects, key_of_document, version_of
from kavka_operator.reconcile.status import Status

FINALIZER = f"{GROUP}/finalizer"
TOGETHER_MAX = 16
"""Requests that are made at the same time, so that hundreds of new resources do not wait for each other's answers."""

Call = Callable[[], Coroutine[Any, Any, Document]]
Answer = Document | ApiError
"""What the API server said to a write: what the object is now, or why it is not written."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A status to write, and those of its fields that nobody else may set."""

    key: Key
    uid: str
    status: Mapping[str, Any]
    ours: Collection[str] = ()


@dataclass(slots=True)
class KubernetesResources:
    """The `Resources` of one cluster."""

    cluster: ClusterKey
    objects: Objects
    api: Api
    bridge: Bridge
    _read_before: dict[Key, tuple[object, AnyResource | Unreadable]] = field(default_factory=dict)
    _stands: dict[Key, tuple[object, Mapping[str, Any]]] = field(default_factory=dict)
    """The status that was written last, and the version that the object had with it."""

    is_being_changed = False

    def stamp(self) -> int:
        """A number that grows whenever what is wanted changes."""
        return self.objects.stamp(self.cluster)

    def read(self) -> tuple[list[AnyResource], list[Unreadable]]:
        """Every resource with its status, the cluster first, and those that cannot be understood."""
        read = {key_of_document(document): self._read(document) for document in self.objects.of(self.cluster)}
        self._read_before = read
        self._stands = {key: stands for key, stands in self._stands.items() if key in read}
        every = [stored for _, stored in read.values()]
        unreadable = [stored for stored in every if isinstance(stored, Unreadable)]
        return [stored for stored in every if not isinstance(stored, Unreadable)], unreadable

    def set_status(self, resource: AnyResource, status: Status) -> bool:
        """Write a status if it says anything new; whether it was written. Raises ApiError."""
        return status != resource.status and bool(_good(*self._show([_shown(resource, status)])))

    def set_statuses(self, wanted: Sequence[tuple[AnyResource, Status]]) -> Mapping[Key, Exception]:
        """Write statuses of many resources, each if it says anything new; why some could not be written."""
        shown = [_shown(resource, status) for resource, status in wanted if status != resource.status]
        answers = zip((status.key for status in shown), self._show(shown), strict=True)
        return {key: answer for key, answer in answers if isinstance(answer, ApiError)}

    def note_unreadable(self, unread: Unreadable, status: Mapping[str, Any]) -> None:
        """Write the status of a resource that cannot be understood. Raises ApiError."""
        if status != part(unread.document, "status"):
            _good(*self._show([Shown(unread.key, _uid(unread.document), dict(status))]))

    def _show(self, shown: Sequence[Shown]) -> list[Answer]:
        """Write statuses, except those that stand already beside conditions of others, which are read with ours.

        The answer is empty where none is written.
        """
        new = [
            found for found in shown if self._stands.get(found.key) != (self.objects.version(found.key), found.status)
        ]
        calls = [self._applied(found) for found in new]
        answers = dict(zip((found.key for found in new), self._written(calls), strict=True))
        for found in new:
            if not isinstance(answer := answers[found.key], ApiError):
                self._stands[found.key] = version_of(answer), found.status
        return [answers.get(found.key, {}) for found in shown]

    def _applied(self, shown: Shown) -> Call:
        """The write of a status. Fields of ours that another wrote into it by hand go."""

        async def apply() -> Document:
            answer = await self.api.apply(shown.key, shown.uid, {"status": shown.status}, "status")
            strays = [name for name in part(answer, "status") if name in shown.ours and name not in shown.status]
            if not strays:
                return answer
            try:
                return await self.api.without(shown.key, answer, strays)
            except ApiError as error:
                if error.status not in {GONE, CONFLICT}:
                    raise
                return answer  # it has changed since: the next look sees it

        return apply

    def hold(self, wanted: Sequence[tuple[AnyResource, bool]]) -> Mapping[Key, Exception]:
        """Keep resources, once deleted, until their deletion is done in Kafka, or do so no longer; why some are not.

        One that is gone meanwhile cannot be kept, and what would be made for it nobody would take away again.
        """
        changed = [(found, needed) for found, needed in wanted if needed != (FINALIZER in found.metadata.finalizers)]
        calls = [self._finalized(key_of(found), found.metadata.uid, is_needed=needed) for found, needed in changed]
        faults: dict[Key, Exception] = {}
        for (resource, is_needed), answer in zip(changed, self._written(calls), strict=True):
            if isinstance(answer, ApiError):
                faults[key_of(resource)] = answer
            elif is_needed and not answer:
                faults[key_of(resource)] = ApiError("it is gone, or was made again", GONE)
        return faults

    def remove(self, key: Key) -> bool:
        """Let go of a deleted resource; whether it was held. Raises ApiError."""
        (answer,) = self.remove_all([key]).values()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def remove_all(self, keys: Sequence[Key]) -> Mapping[Key, bool | Exception]:
        """Let go of many deleted resources: whether each was held, or why it is held still."""
        metadata = {key_of_document(found): part(found, "metadata") for found in self.objects.of(self.cluster)}
        held = [key for key in keys if FINALIZER in metadata.get(key, {}).get("finalizers", ())]
        calls = [self._finalized(key, str(metadata[key].get("uid")), is_needed=False) for key in held]
        answers = zip(held, self._written(calls), strict=True)
        found = {key: answer if isinstance(answer, ApiError) else bool(answer) for key, answer in answers}
        return {key: found.get(key, False) for key in keys}

    def _finalized(self, key: Key, uid: str, *, is_needed: bool) -> Call:
        """The write of our finalizer, or of none."""
        metadata = {"metadata": {"finalizers": [FINALIZER]}} if is_needed else {"metadata": {}}
        return partial(self.api.apply, key, uid, metadata)

    def _written(self, calls: Sequence[Call]) -> list[Answer]:
        """Make writes, `TOGETHER_MAX` at a time, and note what the objects are now.

        The answer is empty where an object is gone, was changed or made again. One that fails stops no other.
        """
        batches = (calls[start : start + TOGETHER_MAX] for start in range(0, len(calls), TOGETHER_MAX))
        return [self._noted(answer) for batch in batches for answer in self._together(batch)]

    def _noted(self, answer: Answer) -> Answer:
        if isinstance(answer, ApiError):
            return {} if answer.status in {GONE, CONFLICT} else answer
        self.objects.take(answer)
        return answer

    def _together(self, calls: Sequence[Call]) -> list[Answer]:
        """Make a few requests at the same time."""

        async def make(call: Call) -> Answer:
            try:
                return await call()
            except ApiError as error:
                return error

        async def make_all() -> list[Answer]:
            return await asyncio.gather(*map(make, calls))

        try:
            return self.bridge.wait(make_all())
        except ApiError as error:
            return [error] * len(calls)

    def _read(self, document: Document) -> tuple[object, AnyResource | Unreadable]:
        """A resource with its version; while that is the same it is not parsed again."""
        key, version = key_of_document(document), version_of(document)
        before = self._read_before.get(key)
        if before is not None and before[0] == version:
            return before
        try:
            return version, resource_from(document)
        except UnreadableError as error:
            return version, Unreadable(key, document, str(error))


def _shown(resource: AnyResource, status: Status) -> Shown:
    ours = set(fields_by_key(type(status)))
    return Shown(key_of(resource), resource.metadata.uid, status.to_dict(), ours)


def _good(answer: Answer) -> Document:
    """The document that was answered. Raises the ApiError that was."""
    if isinstance(answer, ApiError):
        raise answer
    return answer


def _uid(document: Mapping[str, Any]) -> str:
    return str(part(document, "metadata").get("uid"))
