"""Opens the store that a command reads resources from: local clusters, or the API server of a kubeconfig.

A kubeconfig is used where an option asks for it (`--kubernetes`, `--kubeconfig`, `--context`) or kubectl started the
command (`kubectl kavka`), and otherwise only where this machine has no local cluster and no state directory is named;
a note on stderr says so.
"""

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from kavka_cli.kubernetes.api_server import ApiServer, KubernetesError
from kavka_cli.kubernetes.kubeconfig import KubeconfigError, access, files_of
from kavka_cli.local_clusters import state_directory
from kavka_cli.local_resources import Document, documents_of, not_found
from kavka_cli.output import CommandError
from kavka_cli.plugin import is_plugin
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.kinds import KINDS, Key
from kavka_operator.api.stored_resources import part
from kavka_operator.platform.local.layout import clusters
from kavka_operator.platform.local.store import Store

STATE_VARIABLE = "KAVKA_STATE_DIR"


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Options of a command line that choose the store; without a namespace it is the store's own."""

    state: Path | None = None
    namespace: str | None = None
    kubeconfig: Path | None = None
    context: str | None = None
    is_kubernetes: bool = False


class ResourceStore(Protocol):
    """Resources as a command reads and annotates them. Every method may raise CommandError."""

    @property
    def name(self) -> str:
        """The store as messages name it."""
        ...

    @property
    def namespace(self) -> str:
        """The namespace of commands that name none."""
        ...

    def documents(self, namespace: str | None) -> dict[Key, Document]:
        """The resources of a namespace, or of all where it is None, as they are shown."""
        ...

    def annotate(self, document: Document, annotations: Mapping[str, str | None]) -> None:
        """Set annotations of a resource, and take away those that are None."""
        ...


@dataclass(frozen=True)
class LocalResources:
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
class KubernetesResources:
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


def add_store(parser: ArgumentParser) -> None:
    """Add the options that name a namespace, or Kubernetes instead of local clusters."""
    words = "The namespace of the resources (default; of Kubernetes, the context's)."
    parser.add_argument("--namespace", "-n", metavar="NAME", help=words)
    words = "Speak to Kubernetes, as kubectl would; so it is too where no local cluster is known."
    parser.add_argument("--kubernetes", "-k", action="store_true", help=words)
    words = "Speak to Kubernetes, by this file. [env: KUBECONFIG]"
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help=words)
    words = "Speak to Kubernetes, by this context of the kubeconfig."
    parser.add_argument("--context", metavar="NAME", help=words)


def store_options(options: Namespace) -> StoreOptions:
    """The options that `add_store` added, and the state directory."""
    is_kubernetes = options.kubernetes or is_plugin()
    return StoreOptions(options.state_dir, options.namespace, options.kubeconfig, options.context, is_kubernetes)


def open_store(options: StoreOptions) -> ResourceStore:
    """The store that the options choose. Raises CommandError."""
    files = files_of(options.kubeconfig, os.environ)
    is_named = options.is_kubernetes or options.kubeconfig is not None or options.context is not None
    if is_named and options.state is not None:
        raise CommandError("--state-dir is for local clusters; leave it out, or the options about Kubernetes")
    state = state_directory(options.state)
    if not is_named and (
        options.state is not None
        or os.environ.get(STATE_VARIABLE)
        or any(True for _ in clusters(state))
        or not any(path.exists() for path in files)
    ):
        return LocalResources(state)
    try:
        store = KubernetesResources(ApiServer(access(files, options.context)))
    except KubeconfigError as error:
        raise CommandError(str(error)) from error
    if not is_named:
        sys.stderr.write(f"no local cluster is known, so this is {store.name}\n")
    return store


def cluster_document(store: ResourceStore, name: str | None, namespace: str) -> Document:
    """The KafkaCluster of a name, or the only one of the namespace. Raises CommandError."""
    kind = KafkaCluster.kind_name
    found = {key[2]: shown for key, shown in store.documents(namespace).items() if key[0] == kind}
    if name is not None:
        if name not in found:
            raise CommandError(f"{not_found(kind, name, namespace)} of {store.name}")
        return found[name]
    if len(found) != 1:
        which = f"name one of {', '.join(sorted(found))}" if found else "there is none"
        raise CommandError(f'{which} in namespace "{namespace}" of {store.name}')
    return next(iter(found.values()))


def _key(document: Document) -> Key:
    metadata = part(document, "metadata")
    return str(document["kind"]), str(metadata.get("namespace")), str(metadata.get("name"))
