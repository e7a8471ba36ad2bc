"""`kavka console`: clusters in a browser, on this machine alone. It only reads, unless `--write` says otherwise."""

import logging
import os
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kavka_cli.console_process import KEY_VARIABLE, PORT, PORT_MAX
from kavka_cli.local_clusters import add_state_directory, is_running, state_directory
from kavka_cli.output import CommandError, complain, note, say
from kavka_cli.profiles import PROFILE_VARIABLE, Profile, profiles, shown_addresses
from kavka_cli.resource_store import add_store, store_options
from kavka_cli.schema_registry.decoding import Decoder
from kavka_cli.schema_registry.registry_client import REGISTRY_VARIABLE, RegistryClient, RegistryError
from kavka_cli.target import (
    Target,
    TargetOptions,
    add_client_properties,
    check_words,
    find_target,
    implied_profile,
    options_of,
    target_options,
)
from kavka_operator.optional_libraries import lacking
from kavka_operator.platform.local.layout import Layout, clusters

if TYPE_CHECKING:
    from kavka_top.console.audit_answers import AuditAnswers

HELP = "Show clusters, any Kafka too, in a browser: topics, records, groups, clients, quotas; edit quotas if asked to."
EVERY_SECONDS_MIN, EVERY_SECONDS_MAX = 0.5, 3600.0
CLUSTERS_MAX = 20
WORDS: Final = {
    "bootstrap": "--bootstrap",
    "clusters": "CLUSTER",
    "namespace": "--namespace",
    "context": "--context",
    "profile": "--profile",
}
"""Options that name clusters, and what a person writes for them."""


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka console`."""
    add_state_directory(parser)
    words = "KafkaClusters; not needed to see all that run on this machine."
    parser.add_argument("clusters", nargs="*", metavar="CLUSTER", help=words)
    add_store(parser)
    words = "Any other Kafka, by the addresses of its brokers; may be given more than once, a cluster each."
    parser.add_argument("--bootstrap", action="append", default=[], metavar="HOST:PORT,...", help=words)
    add_client_properties(parser)
    words = f"A Kafka by a profile of `kavka profile`; may be given more than once. [env: {PROFILE_VARIABLE}]"
    parser.add_argument("--profile", action="append", default=[], metavar="PROFILE", help=words)
    words = "Metrics pages of brokers, for what Kafka's API does not tell; those of a local cluster are known."
    parser.add_argument("--metrics", default="", metavar="URL,...", help=words)
    words = "A schema registry with Confluent's API, by which records are decoded (or $KAVKA_REGISTRY)."
    parser.add_argument("--registry", metavar="URL", default=os.environ.get(REGISTRY_VARIABLE), help=words)
    words = (
        "Let the page edit the ClientQuotas of clusters of this machine, with a diff before; otherwise it only reads."
    )
    parser.add_argument("--write", action="store_true", help=words)
    words = "A directory of `kavka audit run`, or s3://BUCKET/PREFIX, whose answers the page shows; may be repeated."
    parser.add_argument("--audit", action="append", default=[], metavar="DIR", help=words)
    words = f"The port on 127.0.0.1; 0 is any that is free ({PORT}, or a free one where it is taken)."
    parser.add_argument("--port", type=int, metavar="PORT", help=words)
    parser.add_argument("--every", type=float, default=2.0, metavar="SECONDS", help="Refresh interval (%(default)s).")


def run(options: Namespace) -> int:
    """Serve the page until Ctrl-C; the exit code."""
    try:
        if lack := lacking("kavka console", "console", "kavka_top", "aiohttp"):
            raise CommandError(lack)
        _check(options)
        found = dict[str, Target]()
        for target in targets_of(options):
            if (other := found.setdefault(target.name, target)).bootstrap != target.bootstrap:
                raise CommandError(f'"{target.name}" is {other.bootstrap} and {target.bootstrap}: show one of them')
        return _serve(found, options)
    except (CommandError, RegistryError) as error:
        return complain(error)


def _check(options: Namespace) -> None:
    """Raise CommandError where options say nothing, or do not go together."""
    if not EVERY_SECONDS_MIN <= options.every <= EVERY_SECONDS_MAX:
        raise CommandError(f"--every is from {EVERY_SECONDS_MIN:g} to {EVERY_SECONDS_MAX:g} seconds")
    if options.port is not None and not 0 <= options.port <= PORT_MAX:
        raise CommandError(f"--port: {options.port} is not from 0 to {PORT_MAX}")
    count = len(options.clusters) + len(options.bootstrap) + len(options.profile)
    if count > CLUSTERS_MAX:
        raise CommandError(f"at most {CLUSTERS_MAX} clusters stand on one page")
    if options.metrics and count > 1:
        raise CommandError("--metrics is for one cluster; show the others by a console of their own")


def targets_of(options: Namespace) -> Iterator[Target]:
    """Give the clusters. Raises CommandError where there is none, or one does not run."""
    check_words(options, WORDS)
    others = _profiles(options)
    for profile in others:
        yield find_target(options_of(profile, options))
    has_file = options.command_config is not None
    for address in options.bootstrap or ([None] if has_file else []):
        yield find_target(target_options(_one(options, bootstrap=address)))
    is_elsewhere = bool(others or options.bootstrap or has_file)
    chosen = options.clusters if is_elsewhere else options.clusters or _running(options) or [None]
    for name in chosen:
        where = store_options(options)
        yield find_target(TargetOptions(metrics=options.metrics, cluster=name, where=where))


def _one(options: Namespace, bootstrap: str | None) -> Namespace:
    """The options as they are for one cluster."""
    return Namespace(**{**vars(options), "bootstrap": bootstrap, "cluster": None, "name": None, "profile": None})


def _profiles(options: Namespace) -> list[Profile]:
    """The profiles that are named, or the one that is meant where nothing is. Raises CommandError."""
    if options.profile:
        return [profiles().get(name) for name in options.profile]
    is_named = bool(options.clusters or options.bootstrap)
    implied = None if is_named or options.write else implied_profile(_one(options, bootstrap=None))
    return [] if implied is None else [implied]


def _running(options: Namespace) -> list[str]:
    """The clusters of a namespace that run on this machine."""
    where = store_options(options)
    if where.is_kubernetes or where.kubeconfig is not None or where.context is not None:
        return []
    namespace = where.namespace or "default"
    found = (layout for layout in clusters(state_directory(where.state)) if layout.namespace == namespace)
    return [layout.cluster for layout in found if is_running(layout)][:CLUSTERS_MAX]


def _layouts(found: dict[str, Target], options: Namespace) -> dict[str, Layout]:
    """The clusters of this machine among those that are shown. Raises CommandError where none may be edited."""
    where = store_options(options)
    is_local = not (where.is_kubernetes or where.kubeconfig is not None or where.context is not None)
    known = {(layout.namespace, layout.cluster): layout for layout in clusters(state_directory(where.state))}
    chosen = {
        name: known[target.namespace, name]
        for name, target in found.items()
        if is_local and target.is_declared and (target.namespace, name) in known
    }
    if options.write and not chosen:
        raise CommandError("--write edits the quotas of clusters of `kavka up`, and none of them is shown")
    return chosen


def _registry(found: Iterable[Target]) -> str | None:
    """The schema registry of the profiles that are shown. Raises CommandError where there are several."""
    registries = sorted({target.registry for target in found if target.registry})
    if len(registries) > 1:
        words = ", ".join(map(shown_addresses, registries))
        raise CommandError(f"the profiles name several schema registries: {words}; choose by --registry")
    return registries[0] if registries else None


def _serve(found: dict[str, Target], options: Namespace) -> int:
    from kavka_top.console.audit_answers import UnreadableAnswersError, answers_at, answers_in

    registry = options.registry or _registry(found.values())
    decoder = Decoder(RegistryClient(registry)) if registry else None
    layouts = _layouts(found, options)
    with ExitStack() as stack:
        try:
            answers = [
                stack.enter_context(answers_at(place)) if "://" in place else answers_in(Path(place))
                for place in options.audit
            ]
        except UnreadableAnswersError as error:
            raise CommandError(str(error)) from error
        return _serve_with(found, options, decoder, layouts, answers)


def _serve_with(
    found: dict[str, Target],
    options: Namespace,
    decoder: Decoder | None,
    layouts: dict[str, Layout],
    answers: Sequence["AuditAnswers"],
) -> int:
    import asyncio

    from kavka_top.console.server import Console, serve

    # The client library would tell of each broker that does not answer: the page does so.
    logging.getLogger("kafka").addHandler(logging.NullHandler())

    def tell(address: str) -> None:
        edits = f"edits quotas of {', '.join(layouts)}; " if options.write else ""
        say(f"{address}\nshows {', '.join(found)}, to you on this machine; {edits}Ctrl-C ends it")

    ports = [PORT, 0] if options.port is None else [options.port]
    for port in ports:
        console = Console(
            found, options.every, decoder=decoder, layouts=layouts, writable=options.write, answers=answers
        )
        console.key = os.environ.get(KEY_VARIABLE) or console.key
        try:
            asyncio.run(serve(console, port, tell))
        except KeyboardInterrupt:
            return 0
        except OSError as error:
            if port == ports[-1]:
                raise CommandError(f"127.0.0.1:{port} cannot be opened: {error.strerror}") from error
            note(f"port {port} is in use; the page has another one")
    return 0
