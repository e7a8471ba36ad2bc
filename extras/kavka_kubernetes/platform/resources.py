"""The resources of one cluster, read from what the watch has seen and written to the API server."""

import asyncio
from collections.abc import Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kavka_kubernetes.platform.api import CONFLICT, GONE, Api, ApiError, Bridge, Document
from kavka_kubernetes.platform.objects import ClusterKey, Objects, key_of_document, version_of
from kavka_operator.api import GROUP
from kavka_operator.api.kinds import AnyResource, Key, key_of
from kavka_operator.api.stored import Unreadable, UnreadableError, part, resource_from
from kavka_operator.reconcile.status import Status

FINALIZER = f"{GROUP}/finalizer"
TOGETHER_MAX = 16
"""Finalizers that are written at the same time, so that hundreds of new resources hold up no roll."""


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
        if status == resource.status:
            return False
        ours = {known.key for known in type(status).known_fields}
        return self._show(key_of(resource), resource.metadata.uid, status.to_dict(), ours)

    def note_unreadable(self, unread: Unreadable, status: Mapping[str, Any]) -> None:
        """Write the status of a resource that cannot be understood. Raises ApiError."""
        if status != part(unread.document, "status"):
            self._show(unread.key, _uid(unread.document), dict(status))

    def _show(self, key: Key, uid: str, status: Mapping[str, Any], ours: Collection[str] = ()) -> bool:
        """Write a status, unless it stands already beside conditions of others, which are read with ours.

        Fields of `ours` that are not in it and are there all the same were written by hand, and go.
        """
        if self._stands.get(key) == (self.objects.version(key), status):
            return False
        answer = self._apply(key, uid, {"status": status}, "status")
        if strays := [name for name in part(answer, "status") if name in ours and name not in status]:
            answer = self._written(self.api.without(key, answer, strays)) or answer
        self._stands[key] = version_of(answer), status
        return bool(answer)

    def hold(self, wanted: Sequence[tuple[AnyResource, bool]]) -> Mapping[Key, Exception]:
        """Keep resources, once deleted, until their deletion is done in Kafka, or do so no longer; why some are not.

        One that is gone meanwhile cannot be kept, and what would be made for it nobody would take away again.
        """
        changed = [(found, needed) for found, needed in wanted if needed != (FINALIZER in found.metadata.finalizers)]
        faults: dict[Key, Exception] = {}
        for start in range(0, len(changed), TOGETHER_MAX):
            some = changed[start : start + TOGETHER_MAX]
            for (resource, is_needed), answer in zip(some, self._finalize_together(some), strict=True):
                if isinstance(answer, ApiError) and answer.status not in {GONE, CONFLICT}:
                    faults[key_of(resource)] = answer
                elif not isinstance(answer, ApiError):
                    self.objects.take(answer)
                elif is_needed:
                    faults[key_of(resource)] = ApiError("it is gone, or was made again", GONE)
        return faults

    def _finalize_together(self, some: Sequence[tuple[AnyResource, bool]]) -> list[Document | ApiError]:
        """Write the finalizers of a few resources at the same time; the answers, or why there is none."""

        async def write(resource: AnyResource, is_needed: bool) -> Document | ApiError:
            parts = _finalizers([FINALIZER] if is_needed else [])
            try:
                return await self.api.apply(key_of(resource), resource.metadata.uid, parts)
            except ApiError as error:
                return error

        async def write_all() -> list[Document | ApiError]:
            return await asyncio.gather(*(write(resource, is_needed) for resource, is_needed in some))

        try:
            return self.bridge.wait(write_all())
        except ApiError as error:
            return [error] * len(some)

    def remove(self, key: Key) -> bool:
        """Let go of a deleted resource; whether it was held. Raises ApiError."""
        documents = {key_of_document(document): document for document in self.objects.of(self.cluster)}
        metadata = part(documents.get(key, {}), "metadata")
        if FINALIZER not in metadata.get("finalizers", ()):
            return False
        return bool(self._apply(key, str(metadata.get("uid")), _finalizers([])))

    def _apply(self, key: Key, uid: str, parts: Mapping[str, Any], subresource: str = "") -> Document:
        """Write to an object, and note what it is now; empty if it is gone or made again. Raises ApiError."""
        return self._written(self.api.apply(key, uid, parts, subresource))

    def _written(self, work: Coroutine[Any, Any, Document]) -> Document:
        """Do a write, and note what the object is now; empty if it is gone, changed or made again. Raises ApiError."""
        try:
            answer = self.bridge.wait(work)
        except ApiError as error:
            if error.status not in {GONE, CONFLICT}:
                raise
            return {}
        self.objects.take(answer)
        return answer

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


def _finalizers(finalizers: list[str]) -> Document:
    return {"metadata": {"finalizers": finalizers} if finalizers else {}}


def _uid(document: Mapping[str, Any]) -> str:
    return str(part(document, "metadata").get("uid"))
