"""Where a command finds resources: in the local store, or at the API server of a kubeconfig.

A kubeconfig is spoken to where a person asks for it (`--kubernetes`, `--kubeconfig`, `--context`, or the command run
as `kubectl kavka`), and otherwise only where this machine has no local cluster and nobody named a state directory; the
latter is said on stderr.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from kavka_operator.api.kinds import KINDS, Key
from kavka_operator.api.stored import part
from kavka_operator.cli.stored import Document, documents_of
from kavka_operator.cli.words import CommandError, state_directory
from kavka_operator.platform.kubernetes.asking import ApiServer, KubernetesError
from kavka_operator.platform.kubernetes.kubeconfig import KubeconfigError, access, files_of
from kavka_operator.platform.local.layout import clusters
from kavka_operator.platform.local.store import Store

STATE_VARIABLE = "KAVKA_STATE_DIR"


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """The place as a person typed it; a namespace of None is the place's own."""

    state: Path | None = None
    namespace: str | None = None
    kubeconfig: Path | None = None
    context: str | None = None
    is_kubernetes: bool = False


class Place(Protocol):
    """A place that holds resources. Every method may raise CommandError."""

    @property
    def name(self) -> str:
        """The place as messages name it."""
        ...

    @property
    def namespace(self) -> str:
        """The namespace that is meant where a person names none."""
        ...

    def documents(self, namespace: str | None) -> dict[Key, Document]:
        """The resources of a namespace, or of all where it is None, as they are shown."""
        ...

    def annotate(self, document: Document, annotations: Mapping[str, str | None]) -> None:
        """Set annotations of a resource, and take away those that are None."""
        ...


@dataclass(frozen=True)
class LocalPlace:
    """The clusters of this machine."""

    state: Path

    @property
    def name(self) -> str:
        return f"local clusters in {self.state}"

    namespace = "default"

    def documents(self, namespace: str | None) -> dict[Key, Document]:
        """The resources as the store holds them; the status of a cluster that does not run is marked as old."""
        every = {key: found for layout in clusters(self.state) for key, found in documents_of(layout).items()}
        return {key: found for key, found in every.items() if namespace in {None, key[1]}}

    def annotate(self, document: Document, annotations: Mapping[str, str | None]) -> None:
        """Write the annotations into the store. Raises CommandError where the resource is gone."""
        key = _key(document)
        layout = next((layout for layout in clusters(self.state) if Store(layout).has(key)), None)
        if layout is None or not Store(layout).annotate(key, annotations):
            raise CommandError(f'{key[0]} "{key[2]}" is gone meanwhile')


@dataclass(frozen=True)
class KubernetesPlace:
    """The resources that an API server keeps."""

    server: ApiServer

    @property
    def name(self) -> str:
        return f'Kubernetes, context "{self.server.access.context}" ({self.server.access.server})'

    @cached_property
    def namespace(self) -> str:
        return self.server.access.namespace

    def documents(self, namespace: str | None) -> dict[Key, Document]:
        """The resources as the API server lists them. Raises CommandError."""
        try:
            found = [document for kind in KINDS for document in self.server.resources(kind, namespace)]
        except KubernetesError as error:
            raise CommandError(str(error)) from error
        return {_key(document): document for document in found}

    def annotate(self, document: Document, annotations: Mapping[str, str | None]) -> None:
        """Patch the annotations of this very object. Raises CommandError."""
        try:
            self.server.annotate(document, annotations)
        except KubernetesError as error:
            raise CommandError(str(error)) from error


def place_of(asked: Whereabouts) -> Place:
    """The place that is meant. Raises CommandError."""
    files = files_of(asked.kubeconfig, os.environ)
    is_named = asked.is_kubernetes or asked.kubeconfig is not None or asked.context is not None
    if is_named and asked.state is not None:
        raise CommandError("--state-dir is for local clusters; leave it out, or the options about Kubernetes")
    state = state_directory(asked.state)
    if not is_named and (
        asked.state is not None
        or os.environ.get(STATE_VARIABLE)
        or any(True for _ in clusters(state))
        or not any(path.exists() for path in files)
    ):
        return LocalPlace(state)
    try:
        place = KubernetesPlace(ApiServer(access(files, asked.context)))
    except KubeconfigError as error:
        raise CommandError(str(error)) from error
    if not is_named:
        sys.stderr.write(f"no local cluster is known, so this is {place.name}\n")
    return place


def _key(document: Document) -> Key:
    metadata = part(document, "metadata")
    return str(document["kind"]), str(metadata.get("namespace")), str(metadata.get("name"))
