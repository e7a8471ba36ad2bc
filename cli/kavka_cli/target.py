"""Finds the cluster that a command is for: one of `kavka up`, one on Kubernetes, or any by bootstrap addresses."""

import base64
import os
import socket
from argparse import ArgumentParser, Namespace
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from kavka_broker.core.config.properties import parse_properties
from kavka_cli.client_properties import BOOTSTRAP, OPTION, client_of_file
from kavka_cli.connection import bootstrap_and_security
from kavka_cli.kubernetes.api_server import KubernetesError
from kavka_cli.local_clusters import state_directory, the_cluster
from kavka_cli.local_resources import Document
from kavka_cli.output import CommandError, note
from kavka_cli.plugin import is_plugin
from kavka_cli.profiles import PROFILE_VARIABLE, Profile, default_profile, profiles
from kavka_cli.resource_store import (
    STATE_VARIABLE,
    KubernetesResources,
    StoreOptions,
    add_store,
    cluster_document,
    open_store,
    store_options,
)
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.kinds import AnyResource, cluster_key, key_of
from kavka_operator.api.quota import AnyEntity, ClientQuota, entity_of
from kavka_operator.api.stored_resources import UnreadableError, part, resource_from
from kavka_operator.api.topic import Topic
from kavka_operator.api.user import KafkaUser
from kavka_operator.domain.access import OPEN, Security
from kavka_operator.platform.external import SecretError, security_of
from kavka_operator.platform.kubernetes.objects.names import bootstrap_service, place_secret
from kavka_operator.platform.local.files import read_text
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.store import Store
from kavka_operator.platform.security import among_nodes
from kavka_operator.reconcile.quotas import declared

WORDS: Final = {
    "bootstrap": "--bootstrap",
    "cluster": "--cluster",
    "name": "CLUSTER",
    "namespace": "--namespace",
    "context": "--context",
    "profile": "--profile",
}
"""Options that name a cluster, or a part of its name, and what a person writes for them."""
PLACES: Final = {
    "name": "CLUSTER",
    "cluster": "--cluster",
    "namespace": "--namespace",
    "state_dir": "--state-dir",
    "kubernetes": "--kubernetes",
    "kubeconfig": "--kubeconfig",
    "context": "--context",
}
"""Options that name a cluster of this machine or of Kubernetes."""
LABELS: Final = ("cluster", "namespace")
"""Options that say, beside another Kafka, how the resources that are printed name it and where they belong."""


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """Options of a command line that say which cluster is meant.

    With `bootstrap` it is any Kafka, whose pages `metrics` names, and which `security` lets this process in. Of a
    profile it has the name, and the URL of its schema registry.
    """

    bootstrap: str | None = None
    metrics: str = ""
    cluster: str | None = None
    where: StoreOptions = field(default_factory=StoreOptions)
    security: Security = OPEN
    profile: str | None = None
    registry: str | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """A cluster that runs. `owners` are its resources that set quotas, by entity: of several the oldest; `claimed`
    are the topics that have a resource, `users` the users. `resources` are all that are about it, and itself.
    """

    name: str
    bootstrap: str
    urls: tuple[str, ...] = ()
    owners: Mapping[AnyEntity, ClientQuota] = field(default_factory=dict)
    claimed: frozenset[str] = frozenset()
    security: Security = OPEN
    users: frozenset[str] = frozenset()
    namespace: str = "default"
    resources: tuple[AnyResource, ...] = ()
    registry: str | None = None

    @property
    def is_declared(self) -> bool:
        """Whether a KafkaCluster of this machine or of Kubernetes declares it."""
        return any(isinstance(resource, KafkaCluster) for resource in self.resources)


def add_target(parser: ArgumentParser, *, has_pages: bool = True) -> None:
    """Add the options that say which cluster is meant; without `has_pages` none that names metrics pages."""
    parser.add_argument("name", nargs="?", metavar="CLUSTER", help="The KafkaCluster; not needed where there is one.")
    parser.add_argument("--cluster", help="The same, by an option.")
    add_store(parser)
    words = "Any other Kafka, by the addresses of its brokers."
    parser.add_argument("--bootstrap", metavar="HOST:PORT,...", help=words)
    add_client_properties(parser)
    add_profile(parser)
    words = "Metrics pages of brokers, for what Kafka's API does not tell; those of a local cluster are known."
    if has_pages:
        parser.add_argument("--metrics", default="", metavar="URL,...", help=words)
    else:
        parser.set_defaults(metrics="")


def add_client_properties(parser: ArgumentParser) -> None:
    """Add `--command-config`."""
    words = "How the Kafka of --bootstrap lets clients in: a file of properties, as Kafka's own tools take it."
    parser.add_argument(OPTION, type=Path, metavar="FILE", help=words)


def add_profile(parser: ArgumentParser) -> None:
    """Add `--profile`."""
    words = f"Any other Kafka, by the name of a profile of `kavka profile`. [env: {PROFILE_VARIABLE}]"
    parser.add_argument("--profile", metavar="PROFILE", help=words)


def named_profile(options: Namespace, labels: Collection[str] = ()) -> Profile | None:
    """The profile that `--profile` names. Raises CommandError where there is none, or more says which is meant; options
    in `labels` say how to name what is printed.
    """
    if options.profile is None:
        return None
    if options.bootstrap is not None or options.command_config is not None:
        raise CommandError("--profile says where a Kafka is and how it lets clients in; leave out the other options")
    if others := [words for name, words in PLACES.items() if name not in labels and getattr(options, name)]:
        raise CommandError(f"--profile and {others[0]} each say which Kafka is meant; leave one of them out")
    return profiles().get(options.profile)


def implied_profile(options: Namespace, *, is_change: bool = False) -> Profile | None:
    """The profile that a command takes whose options name no cluster, no namespace and no store. Raises CommandError,
    also where the command changes a Kafka and neither its words nor the environment name that profile.

    A note on stderr names it: it may be another cluster than the one that runs here.
    """
    where = store_options(options)
    is_named = options.bootstrap is not None or options.command_config is not None or where != StoreOptions()
    if is_named or (PROFILE_VARIABLE not in os.environ and os.environ.get(STATE_VARIABLE)) or is_plugin():
        return None
    found = default_profile()
    if found is not None and is_change and PROFILE_VARIABLE not in os.environ:
        raise CommandError(
            f'the profile that is used is "{found.name}" ({found.bootstrap}), and this command changes something: name'
            f" it by --profile {found.name} or {PROFILE_VARIABLE}={found.name}, or another cluster by CLUSTER or"
            " --bootstrap"
        )
    if found is not None:
        note(f'profile "{found.name}": {found.bootstrap}')
    return found


def options_of(profile: Profile, options: Namespace, name: str | None = None) -> TargetOptions:
    """The options that say that the Kafka of a profile is meant. Raises CommandError."""
    metrics, where = options.metrics or profile.metrics, store_options(options)
    return TargetOptions(
        profile.bootstrap, metrics, name, where, profile.security, profile=profile.name, registry=profile.registry
    )


def target_options(options: Namespace, *, labels: Collection[str] = (), is_change: bool = False) -> TargetOptions:
    """The options that `add_target` added, of a command that changes a Kafka or only asks. Those in `labels` may stand
    beside `--profile`. Raises CommandError where one is empty, or the file of properties is not understood.
    """
    check_words(options, WORDS)
    name, where = options.name if options.cluster is None else options.cluster, store_options(options)
    profile = named_profile(options, labels)
    if profile is None and name is None:
        profile = implied_profile(options, is_change=is_change)
    if profile is not None:
        return options_of(profile, options, name)
    if options.command_config is None:
        return TargetOptions(options.bootstrap, options.metrics, name, where)
    security, bootstrap = client_of_file(options.command_config)
    if bootstrap is not None and not bootstrap.strip():
        raise CommandError(f"{OPTION}: {BOOTSTRAP} is empty; name the brokers")
    return TargetOptions(
        bootstrap if options.bootstrap is None else options.bootstrap, options.metrics, name, where, security
    )


def check_words(options: Namespace, words: Mapping[str, str]) -> None:
    """Raise CommandError where an option was given without a word, as by a variable of a shell that is not set: it
    would say that another cluster is meant.
    """
    for name, word in words.items():
        found = getattr(options, name)
        if any(not text.strip() for text in (found if isinstance(found, list) else [found]) if text is not None):
            raise CommandError(f"{word} is empty; name what is meant, or leave it out")


def find_target(options: TargetOptions) -> Target:
    """The cluster that is meant. Raises CommandError where none is, or it does not run."""
    if options.bootstrap is not None:
        namespace = options.where.namespace or "default"
        pages = urls_of(options.metrics)
        return Target(
            options.profile or options.bootstrap,
            options.bootstrap,
            pages,
            security=options.security,
            namespace=namespace,
            registry=options.registry,
        )
    if options.security != OPEN:
        words = "is for a Kafka that --bootstrap or its bootstrap.servers name; other clusters say it themselves"
        raise CommandError(f"--command-config {words}")
    store = open_store(options.where)
    namespace = options.where.namespace or store.namespace
    found = (
        _kept(store, namespace, options.cluster)
        if isinstance(store, KubernetesResources)
        else _local(the_cluster(state_directory(options.where.state), namespace, options.cluster))
    )
    return replace(found, urls=urls_of(options.metrics) or found.urls, namespace=namespace)


def _kept(store: KubernetesResources, namespace: str, name: str | None) -> Target:
    """A cluster whose resource an API server keeps. Raises CommandError."""
    cluster = cluster_of(cluster_document(store, name, namespace))
    bootstrap, security = reached(store, cluster)
    if cluster.spec.external is None:
        check_is_inside(cluster.name, bootstrap)
    resources = resources_of(store, cluster)
    return Target(
        cluster.name,
        bootstrap,
        (),
        _owners(resources),
        _claimed(resources),
        security=security,
        users=_users(resources),
        resources=tuple(resources),
    )


def check_is_inside(name: str, bootstrap: str) -> None:
    """Raise CommandError where this machine knows no host of a cluster of pods: it is outside of their network."""
    hosts = [address.rpartition(":")[0].strip("[]") for address in bootstrap.split(",")]
    if not any(map(_is_known, hosts)):
        raise CommandError(
            f'the brokers of "{name}" have names that only pods know ({hosts[0]}); run the command in a pod with the'
            " operator's image, as by `kubectl run kavka --rm -it --restart=Never --image=IMAGE --command --"
            f" kavka ... --bootstrap {bootstrap}`, or add a listener with a service and name its address with"
            " --bootstrap"
        )


def _is_known(host: str) -> bool:
    try:
        socket.getaddrinfo(host, None)
    except (OSError, UnicodeError):
        return False
    return True


def cluster_of(document: Document) -> KafkaCluster:
    """The KafkaCluster in a document. Raises CommandError where this version cannot understand it."""
    try:
        cluster = resource_from(document)
    except UnreadableError as error:
        raise CommandError(f'KafkaCluster "{document["metadata"]["name"]}" cannot be understood: {error}') from error
    assert isinstance(cluster, KafkaCluster), "documents are found by their kind"
    return cluster


def resources_of(store: KubernetesResources, cluster: KafkaCluster) -> list[AnyResource]:
    """The resources that are about a cluster, from all namespaces, or from its own where no others may be read."""
    try:
        documents = store.documents(None)
    except CommandError:
        documents = store.documents(cluster.metadata.namespace)
    found: list[AnyResource] = []
    for document in documents.values():
        with suppress(UnreadableError):  # `kavka get` says which those are
            found.append(resource_from(document))
    return [resource for resource in found if cluster_key(resource) == key_of(cluster)]


def reached(store: KubernetesResources, cluster: KafkaCluster) -> tuple[str, Security]:
    """Bootstrap addresses of a cluster, and what its brokers ask of clients. Raises CommandError."""
    external = cluster.spec.external
    if external is None and not cluster.status.bootstrap_servers:
        raise CommandError(f'KafkaCluster "{cluster.name}" has no address yet; see `kavka describe kvc`')
    if external is None and not cluster.spec.is_secured:
        return cluster.status.bootstrap_servers or "", OPEN

    def secret(name: str) -> dict[str, str]:
        """The texts of a Secret. Raises SecretError."""
        try:
            data = part(store.server.secret(cluster.metadata.namespace, name), "data")
            return {key: base64.b64decode(value).decode() for key, value in data.items()}
        except (KubernetesError, ValueError) as error:
            raise SecretError(f'the Secret "{name}" cannot be read: {error}') from error

    try:
        if external is not None:
            return external.bootstrap_servers, security_of(external, secret)
        own = secret(place_secret(cluster.name, "operator"))
    except SecretError as error:
        raise CommandError(str(error)) from error
    at = f"{bootstrap_service(cluster.name)}.{cluster.metadata.namespace}.svc:{among_nodes(cluster).port}"
    return at, Security(
        is_tls=True, is_own=True, authority=own.get("ca.crt"), certificate=own.get("tls.crt"), key=own.get("tls.key")
    )


def urls_of(metrics: str) -> tuple[str, ...]:
    """The URLs of metrics pages, of which a person names several with commas. Raises CommandError."""
    from kavka_operator.kafka.broker_metrics import url_of

    try:
        return tuple(url_of(address.strip()) for address in metrics.split(",")) if metrics else ()
    except ValueError as error:
        raise CommandError(f"--metrics: {error}") from error


def _local(layout: Layout) -> Target:
    resources = Store(layout).all()
    bootstrap, security = bootstrap_and_security(layout)
    owners, claimed = _owners(resources), _claimed(resources)
    return Target(
        layout.cluster,
        bootstrap,
        _pages(layout),
        owners,
        claimed,
        security,
        users=_users(resources),
        resources=tuple(resources),
    )


def _users(resources: Sequence[AnyResource]) -> frozenset[str]:
    """The users that have a resource."""
    return frozenset(resource.user_name for resource in resources if isinstance(resource, KafkaUser))


def _claimed(resources: Sequence[AnyResource]) -> frozenset[str]:
    """The topics that have a resource."""
    return frozenset(resource.topic_name for resource in resources if isinstance(resource, Topic))


def _owners(resources: Sequence[AnyResource]) -> dict[AnyEntity, ClientQuota]:
    """The resource that sets the quota of each entity: of several the oldest."""
    youngest_first = sorted(declared(resources), key=lambda quota: quota.seniority, reverse=True)
    return {entity_of(quota.spec.entity): quota for quota in youngest_first}


def _pages(layout: Layout) -> tuple[str, ...]:
    """The metrics pages of the nodes that run, from the settings that they were started with."""
    from kavka_operator.kafka.broker_metrics import url_of

    settings = [parse_properties(read_text(layout.properties(node)) or "") for node, _ in layout.pids()]
    return tuple(url_of(address) for node in settings if (address := node.get("kavka.admin.listener")))
