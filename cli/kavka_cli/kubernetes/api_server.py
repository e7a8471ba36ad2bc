"""Requests of a person's command to an API server: each waits for its answer, by the standard library alone.

`api.py` is how the operator asks. A command asks a few times and ends, and its installation has no client for
Kubernetes (docs/adr/0017).
"""

import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from kavka_cli.kubernetes.kubeconfig import Access
from kavka_operator.api import GROUP, VERSION
from kavka_operator.api.kinds import KINDS
from kavka_operator.api.stored_resources import part
from kavka_operator.kafka.client_certificate import present
from kavka_operator.platform.kubernetes.objects.names import CLUSTER
from kavka_operator.platform.kubernetes.observe.pod_resources import can_resize

MANAGER = "kavka"
REQUEST_SECONDS_MAX = 30.0
ANSWER_BYTES_MAX = 256 << 20
PAGE_MAX = 500
GONE = 404
JSON = "application/json"
PREFIXES = {"StatefulSet": "apis/apps/v1", "Pod": "api/v1", "PersistentVolumeClaim": "api/v1", "Service": "api/v1"}
Document = dict[str, Any]


class KubernetesError(Exception):
    """The API server refused a request (`status` is its HTTP code), or did not answer (0)."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


@dataclass(slots=True)
class ApiServer:
    """Requests about our resources, and for Secrets. Every method may raise KubernetesError."""

    access: Access
    _connection: http.client.HTTPConnection | None = field(default=None)

    def resources(self, kind: str, namespace: str | None) -> list[Document]:
        """Every resource of one of our kinds, in a namespace or in all where it is None. Raises KubernetesError."""
        try:
            found = self._list(_path(kind, namespace), {})
        except KubernetesError as error:
            if error.status != GONE:
                raise
            words = f"this API server does not know {KINDS[kind].plural}.{GROUP}; apply crds/, or install the chart"
            raise KubernetesError(words, GONE) from error
        return [_shown(kind, document) for document in found]

    def secret(self, namespace: str, name: str) -> Document:
        """A Secret."""
        return self._ask("GET", f"/api/v1/namespaces/{namespace}/secrets/{quote(name)}")

    def annotate(self, document: Mapping[str, Any], annotations: Mapping[str, str | None]) -> Document:
        """Set annotations of a resource as it was read, and take away those that are None.

        The uid goes along, so that a resource that was made again under the same name gets nothing that was meant for
        the former.
        """
        metadata = part(document, "metadata")
        body = {"metadata": {"uid": metadata["uid"], "annotations": dict(annotations)}}
        return self._ask("PATCH", _path_of(document), {"fieldManager": MANAGER}, body, "application/merge-patch+json")

    def find(self, written: Document) -> Document | None:
        """The resource of this kind and name as it is stored, with all that machines read; None if there is none."""
        try:
            return self._ask("GET", _path_of(written))
        except KubernetesError as error:
            if error.status == GONE:
                return None
            raise

    def offer(
        self, method: str, written: Document, query: Mapping[str, str], content: str = JSON
    ) -> tuple[Document, tuple[str, ...]]:
        """Create or patch a resource; what comes of it, and the warnings of the API server."""
        named = _path_of(written)
        return self._answer(method, named.rpartition("/")[0] if method == "POST" else named, query, written, content)

    def try_pod(self, pod: Document) -> None:
        """Let the API server judge a pod as if it was made; nothing is."""
        path = f"/api/v1/namespaces/{quote(str(pod['metadata']['namespace']), safe='')}/pods"
        self._ask("POST", path, {"dryRun": "All", "fieldManager": MANAGER}, pod)

    def objects_of(self, kind: str, namespace: str, cluster: str) -> list[Document]:
        """The objects of a kind that nodes of a cluster are made of."""
        path = f"/{PREFIXES[kind]}/namespaces/{quote(namespace, safe='')}/{kind.lower()}s"
        return self._list(path, {"labelSelector": f"{CLUSTER}={cluster}"})

    def machines(self) -> list[Document]:
        """The machines of the Kubernetes."""
        return self._list("/api/v1/nodes", {})

    def resizes_pods(self) -> bool:
        """Whether this Kubernetes changes the resources of a pod that runs."""
        return can_resize(self._ask("GET", "/api/v1"))

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _list(self, path: str, query: Mapping[str, str]) -> list[Document]:
        found: list[Document] = []
        rest = ""
        while True:
            page = self._ask("GET", path, {**query, "limit": str(PAGE_MAX), **({"continue": rest} if rest else {})})
            found += page.get("items") or ()
            if not (rest := str(part(page, "metadata").get("continue") or "")):
                return found

    def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Document | None = None,
        content: str = JSON,
    ) -> Document:
        """The document that a request answers."""
        return self._answer(method, path, query, body, content)[0]

    def _answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Document | None = None,
        content: str = JSON,
    ) -> tuple[Document, tuple[str, ...]]:
        """The document that a request answers, and the warnings that come with it."""
        headers = {"Accept": "application/json", "Content-Type": content, "User-Agent": "kavka"}
        if self.access.token:
            headers["Authorization"] = f"Bearer {self.access.token}"
        base = urlsplit(self.access.server).path.rstrip("/")
        text = None if body is None else json.dumps(body)
        status, said, warnings = self._exchange(method, f"{base}{path}?{urlencode(query or {})}", text, headers)
        if not 200 <= status < 300:
            raise KubernetesError(_refusal(status, said), status)
        try:
            document: Document = json.loads(said)
        except ValueError as error:
            raise KubernetesError(f"what answers at {self.access.server} does not speak JSON") from error
        return document, tuple(map(_warning, warnings))

    def _exchange(
        self, method: str, target: str, text: str | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes, list[str]]:
        if self._connection is None:
            self._connection = connection(self.access)
        try:
            self._connection.request(method, target, text, dict(headers))
            response = self._connection.getresponse()
            said = response.read(ANSWER_BYTES_MAX)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            words = f"the API server {self.access.server} does not answer: {str(error) or type(error).__name__}"
            raise KubernetesError(words) from error
        return response.status, said, response.headers.get_all("Warning") or []


def connection(access: Access) -> http.client.HTTPConnection:
    """A connection that is not open yet. Raises KubernetesError where a certificate is none."""
    address = urlsplit(access.server)
    if address.scheme == "http":
        return http.client.HTTPConnection(address.hostname or "", address.port, timeout=REQUEST_SECONDS_MAX)
    context = _context(access)
    made: type[http.client.HTTPSConnection] = http.client.HTTPSConnection
    if access.server_name is not None:
        made = _named(access.server_name)
    return made(address.hostname or "", address.port, timeout=REQUEST_SECONDS_MAX, context=context)


def _named(server_name: str) -> type[http.client.HTTPSConnection]:
    """A kind of connection that expects this name in the server's certificate."""

    class Named(http.client.HTTPSConnection):
        def connect(self) -> None:
            http.client.HTTPConnection.connect(self)
            self.sock = self._context.wrap_socket(self.sock, server_hostname=server_name)  # type: ignore[attr-defined]

    return Named


def _context(access: Access) -> ssl.SSLContext:
    """The certificates that count. Raises KubernetesError."""
    try:
        context = ssl.create_default_context(cadata=access.authority)
        if not access.is_verified:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if access.certificate is not None:
            present(context, access.certificate, access.key or "")
    except (ssl.SSLError, ValueError) as error:
        raise KubernetesError(f'context "{access.context}": a certificate or key cannot be used: {error}') from error
    return context


def _warning(header: str) -> str:
    """The words of a header such as `299 - "so and so"`."""
    text = header.partition('"')[2].rpartition('"')[0]
    return text.replace('\\"', '"').replace("\\\\", "\\") or header


def _path_of(document: Mapping[str, Any]) -> str:
    """The path of a resource of ours."""
    metadata = part(document, "metadata")
    return _path(str(document["kind"]), str(metadata["namespace"]), str(metadata["name"]))


def _path(kind: str, namespace: str | None, name: str = "") -> str:
    """The path of our resources of a kind, or of one of them."""
    inside = ("namespaces", quote(namespace, safe="")) if namespace is not None else ()
    last = (quote(name, safe=""),) if name else ()
    return "/".join(("", "apis", GROUP, VERSION, *inside, KINDS[kind].plural, *last))


def _shown(kind: str, document: Document) -> Document:
    """The object as commands take it: with its kind, a status, and without what only machines read."""
    metadata = {name: value for name, value in part(document, "metadata").items() if name != "managedFields"}
    return {"kind": kind, **document, "metadata": metadata, "status": part(document, "status")}


def _refusal(status: int, said: bytes) -> str:
    """The API server's own words."""
    try:
        words = str(json.loads(said)["message"])
    except (ValueError, KeyError, TypeError):
        words = said[:500].decode(errors="replace")
    return f"the API server refuses ({status}): {words or 'without a word'}"
