"""The few requests that the operator makes of an API server, as coroutines, and the same for the threads of clusters.

Everything is written by server-side apply as `MANAGER`, which owns what it has written and nothing else: a field that
it no longer writes goes, a finalizer or a condition of somebody else's stays; what others wrote into a status besides
is taken out of it (`Api.without`). The uid of what was read goes with each
write, so that an object that was made again under the same name gets nothing that was meant for the old one.
"""

import asyncio
import base64
import json
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from aiohttp import ClientError
from kubernetes.aio.client import ApiClient

from kavka_operator.api import API_VERSION, GROUP, VERSION
from kavka_operator.api.kinds import KINDS, Key
from kavka_operator.api.stored_resources import part
from kavka_operator.loop.interfaces import NotWrittenError
from kavka_operator.platform.kubernetes.observe.pod_resources import can_resize

MANAGER = "kavka-operator"
REQUEST_SECONDS_MAX = 30.0
PAGE_MAX = 500
GONE, CONFLICT, EXPIRED = 404, 409, 410
PLACES = {
    "Pod": ("/api/v1", "pods"),
    "Service": ("/api/v1", "services"),
    "Secret": ("/api/v1", "secrets"),
    "PersistentVolumeClaim": ("/api/v1", "persistentvolumeclaims"),
    "StatefulSet": ("/apis/apps/v1", "statefulsets"),
    "PodDisruptionBudget": ("/apis/policy/v1", "poddisruptionbudgets"),
    "NetworkPolicy": ("/apis/networking.k8s.io/v1", "networkpolicies"),
    "ServiceAccount": ("/api/v1", "serviceaccounts"),
    "Role": ("/apis/rbac.authorization.k8s.io/v1", "roles"),
    "RoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "rolebindings"),
    "CronJob": ("/apis/batch/v1", "cronjobs"),
    "Job": ("/apis/batch/v1", "jobs"),
}
"""Where the API server has the kinds that nodes are made of, and runs of the analytics."""
APPLY = "application/apply-patch+yaml"
STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
DRY_RUN = ("dryRun", "All")

Document = dict[str, Any]
Result = TypeVar("Result")


class ApiError(NotWrittenError):
    """The API server refused a request (`status` is its HTTP code), or did not answer (0)."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Api:
    """Requests about the custom resources, the lease, and the objects that nodes are made of."""

    client: ApiClient
    wrote: Callable[[str], None] | None = None
    """Is told of each write but those of the Lease, what it was about: `topics/status`."""

    async def all_of(self, kind: str, namespace: str | None) -> tuple[list[Document], str]:
        """Every object of a kind, in one namespace or in all, and the version of the list. Raises ApiError."""
        last, found = await self._listed(_path(kind, namespace), [])
        return found, str(last["metadata"]["resourceVersion"])

    async def apply(self, key: Key, uid: str, parts: Mapping[str, Any], subresource: str = "") -> Document:
        """Write parts of an object that is there, and be told how it is now. Raises ApiError."""
        kind, namespace, name = key
        metadata = {"name": name, "namespace": namespace, "uid": uid, **parts.get("metadata", {})}
        body = {"apiVersion": API_VERSION, "kind": kind, **parts, "metadata": metadata}
        path = _path(kind, namespace, name, *([subresource] if subresource else []))
        query = [("fieldManager", MANAGER), ("force", "true")]
        return await self._request("PATCH", path, query=query, body=body, content_type=APPLY)

    async def without(self, key: Key, document: Document, fields: Iterable[str]) -> Document:
        """Take fields out of the status of an object as it was read, also those of other managers. Raises ApiError."""
        metadata = {name: document["metadata"][name] for name in ("uid", "resourceVersion")}
        body = {"metadata": metadata, "status": dict.fromkeys(fields)}
        path, query = _path(*key, "status"), [("fieldManager", MANAGER)]
        return await self._request("PATCH", path, query=query, body=body, content_type=MERGE)

    async def labelled(self, kind: str, namespace: str, labels: Mapping[str, str]) -> list[Document]:
        """The objects of a kind in a namespace that have these labels. Raises ApiError."""
        wanted = ",".join(f"{name}={value}" for name, value in labels.items())
        version, found = await self._items(_place(kind, namespace), [("labelSelector", wanted)])
        return [{**item, "kind": kind, "apiVersion": version} for item in found]  # lists leave it out

    async def cordoned(self) -> set[str]:
        """The names of the machines that take no new pods, as those that are being emptied. Raises ApiError."""
        page = await self._request("GET", "/api/v1/nodes", query=[("fieldSelector", "spec.unschedulable=true")])
        return {str(item["metadata"]["name"]) for item in page["items"]}

    async def machines(self) -> list[Document]:
        """All machines of the Kubernetes. Raises ApiError."""
        _, found = await self._items("/api/v1/nodes", [])
        return found

    async def rehearse(self, manifest: Document) -> None:
        """Let the API server judge an object as if it was applied; nothing is written. Raises ApiError."""
        await self._put(manifest, [DRY_RUN])

    async def rehearse_pod(self, pod: Document) -> None:
        """Let the API server judge a pod as if it was made, with all that admits pods. Raises ApiError."""
        path = _place("Pod", pod["metadata"]["namespace"])
        await self._request("POST", path, query=[("fieldManager", MANAGER), DRY_RUN], body=pod)

    async def find(self, kind: str, namespace: str, name: str) -> Document | None:
        """An object that nodes are made of as it is now; None where there is none. Raises ApiError."""
        try:
            return await self._request("GET", _place(kind, namespace, name), query=[])
        except ApiError as error:
            if error.status != GONE:
                raise
            return None

    async def put(self, manifest: Document) -> Document:
        """Apply an object that nodes are made of, and be told how it is now. Raises ApiError."""
        return await self._put(manifest, [])

    async def make(self, manifest: Document) -> None:
        """Make an object that is not there; with CONFLICT where there is one. Raises ApiError."""
        path = _place(manifest["kind"], manifest["metadata"]["namespace"])
        await self._request("POST", path, query=[("fieldManager", MANAGER)], body=manifest)

    async def _put(self, manifest: Document, more: list[tuple[str, str]]) -> Document:
        metadata = manifest["metadata"]
        path = _place(manifest["kind"], metadata["namespace"], metadata["name"])
        query = [("fieldManager", MANAGER), ("force", "true"), *more]
        return await self._request("PATCH", path, query=query, body=manifest, content_type=APPLY)

    async def resizes_pods(self) -> bool:
        """Whether this Kubernetes changes the resources of a pod that runs (1.33 and later). Raises ApiError."""
        return can_resize(await self._request("GET", "/api/v1", query=[]))

    async def patch_pod(self, pod: Document, patch: Document, subresource: str = "") -> None:
        """Change parts of a pod as it was read: not of one that was made again since. Raises ApiError."""
        metadata = pod["metadata"]
        path = _place("Pod", metadata["namespace"], metadata["name"], *([subresource] if subresource else []))
        body = {**patch, "metadata": {"uid": metadata["uid"], **part(patch, "metadata")}}
        await self._request("PATCH", path, query=[("fieldManager", MANAGER)], body=body, content_type=STRATEGIC)

    async def delete(self, document: Document) -> None:
        """Delete an object as it was read: not if it has changed since, or was made again. Raises ApiError."""
        metadata = document["metadata"]
        path = _place(document["kind"], metadata["namespace"], metadata["name"])
        found = {name: metadata[name] for name in ("uid", "resourceVersion")}
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": found, "propagationPolicy": "Background"}
        await self._request("DELETE", path, query=[], body=body)

    async def secret(self, namespace: str, name: str) -> dict[str, str]:
        """The texts of a Secret, by their keys. Raises ApiError."""
        found = await self._request("GET", f"/api/v1/namespaces/{namespace}/secrets/{name}", query=[])
        try:
            return {key: base64.b64decode(value).decode() for key, value in (found.get("data") or {}).items()}
        except ValueError as error:
            raise ApiError(f'the Secret "{name}" holds what is no text') from error

    async def find_secret(self, namespace: str, name: str) -> Document:
        """A Secret as it is kept. Raises ApiError."""
        return await self._request("GET", f"{_secrets(namespace)}/{name}", query=[])

    async def keep_secret(self, secret: Document) -> Document:
        """Write a Secret over the version that it names, or create it if it names none. Raises ApiError."""
        metadata = secret["metadata"]
        path = _secrets(metadata["namespace"])
        if "resourceVersion" in metadata:
            return await self._request("PUT", f"{path}/{metadata['name']}", query=[], body=secret)
        return await self._request("POST", path, query=[], body=secret)

    async def announce(self, event: Document) -> None:
        """Make an Event, in the namespace that it names. Raises ApiError."""
        await self._request("POST", _events(event["metadata"]["namespace"]), query=[], body=event)

    async def events_of(self, namespace: str, kind: str, reason: str) -> list[Document]:
        """Events of a reason about objects of a kind, at most `PAGE_MAX`, in no order. Raises ApiError."""
        query = [("fieldSelector", f"regarding.kind={kind},reason={reason}"), ("limit", str(PAGE_MAX))]
        found: list[Document] = (await self._request("GET", _events(namespace), query=query))["items"]
        return found

    async def lease(self, namespace: str, name: str) -> Document:
        """A Lease. Raises ApiError."""
        return await self._request("GET", f"{_leases(namespace)}/{name}", query=[])

    async def put_lease(self, namespace: str, name: str, lease: Mapping[str, Any]) -> Document:
        """Write a Lease over the version that it names, or create it if it names none. Raises ApiError."""
        metadata = {"name": name, "namespace": namespace, **part(lease, "metadata")}
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **lease, "metadata": metadata}
        if "resourceVersion" in metadata:
            return await self._request("PUT", f"{_leases(namespace)}/{name}", query=[], body=body)
        return await self._request("POST", _leases(namespace), query=[], body=body)

    async def _items(self, path: str, query: list[tuple[str, str]]) -> tuple[str, list[Document]]:
        """The API version of a list and all that is in it. Raises ApiError."""
        last, found = await self._listed(path, query)
        return str(last["apiVersion"]), found

    async def _listed(self, path: str, query: list[tuple[str, str]]) -> tuple[Document, list[Document]]:
        """The last page of a list and what is on all of them; from the beginning, once, where it grew too old while it
        was read. Raises ApiError.
        """
        found: list[Document] = []
        rest, is_again = "", False
        while True:
            more = [("continue", rest)] if rest else []
            try:
                page = await self._request("GET", path, query=[*query, ("limit", str(PAGE_MAX)), *more])
            except ApiError as error:
                if error.status != EXPIRED or is_again:
                    raise
                found, rest, is_again = [], "", True
                continue
            found += page["items"]
            if not (rest := page["metadata"].get("continue") or ""):
                return page, found

    async def _request(
        self,
        method: str,
        path: str,
        *,
        query: list[tuple[str, str]],
        body: Document | None = None,
        content_type: str = "application/json",
    ) -> Document:
        """The document that a request answers. Raises ApiError."""
        headers = {"Accept": "application/json", "Content-Type": content_type}
        prepared = await self.client.param_serialize(
            method, path, query_params=query, header_params=headers, body=body, auth_settings=["BearerToken"]
        )
        try:
            answer = await self.client.call_api(*prepared, _request_timeout=REQUEST_SECONDS_MAX)
            data = await answer.response.read()
        except (OSError, TimeoutError, ClientError) as error:  # a connection that the server has closed is no OSError
            raise ApiError(f"the API server does not answer: {str(error) or type(error).__name__}") from error
        if not 200 <= answer.status < 300:
            raise ApiError(_message(data), answer.status)
        if (
            method != "GET"
            and DRY_RUN not in query
            and self.wrote is not None
            and (subject := _subject(path)) != "leases"
        ):
            self.wrote(subject)
        try:
            document: Document = json.loads(data)
        except ValueError as error:
            raise ApiError("what answers for the API server does not speak JSON") from error
        return document


@dataclass(frozen=True, slots=True)
class Bridge:
    """The way from the threads of clusters to the loop that talks to the API server."""

    loop: asyncio.AbstractEventLoop

    def wait(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of a coroutine. Raises what it raises, and ApiError where it does not end."""
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result(2 * REQUEST_SECONDS_MAX)
        except TimeoutError as error:
            future.cancel()
            raise ApiError("the API server does not answer") from error


def _subject(path: str) -> str:
    """The plural of what a path is about, and the part of it: `topics/status`."""
    _, _, inside = path.partition("/namespaces/")
    words = inside.split("/")[1:]
    return "/".join([*words[:1], *words[2:3]])


def _secrets(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/secrets"


def _events(namespace: str) -> str:
    return f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"


def _leases(namespace: str) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"


def _place(kind: str, namespace: str, *rest: str) -> str:
    """The path of the objects of a kind that nodes are made of, or of one of them."""
    prefix, plural = PLACES[kind]
    return "/".join((prefix, "namespaces", namespace, plural, *rest))


def _path(kind: str, namespace: str | None, *rest: str) -> str:
    inside = ("namespaces", namespace) if namespace is not None else ()
    return "/".join(("", "apis", GROUP, VERSION, *inside, KINDS[kind].plural, *rest))


def _message(data: bytes) -> str:
    """The message of a refusal, in the API server's own words."""
    try:
        return str(json.loads(data)["message"])
    except (ValueError, KeyError, TypeError):
        return data[:500].decode(errors="replace")
