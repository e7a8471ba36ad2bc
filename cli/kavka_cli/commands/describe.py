"""`kavka describe`: what is stored of a resource, and what was last seen of it.

Of a topic that is named, the cluster is asked for its readers; with `--bootstrap` or `--profile` that is any Kafka.
"""

from argparse import ArgumentParser, Namespace
from dataclasses import replace

from kavka_cli.local_clusters import add_state_directory
from kavka_cli.local_resources import Document, choose
from kavka_cli.output import CommandError, complain, say
from kavka_cli.resource_names import add_resource_names, parse_names
from kavka_cli.resource_store import StoreOptions, add_store, open_store, store_options
from kavka_cli.resource_tables import as_yaml, sort_key
from kavka_cli.selector import EVERYTHING
from kavka_cli.target import Target, TargetOptions, add_client_properties, add_profile, find_target, target_options
from kavka_cli.topic_readers import as_text, read_topic
from kavka_operator.api.kinds import cluster_key
from kavka_operator.api.printer_columns import aligned, node_table
from kavka_operator.api.stored_resources import UnreadableError, resource_from
from kavka_operator.api.topic import Topic
from kavka_operator.kafka.admin import AdminError

HELP = "Say all that is known of a resource; of a topic, also how far its readers are behind."


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka describe`."""
    add_state_directory(parser)
    add_resource_names(parser)
    add_store(parser)
    words = "Any Kafka, by the addresses of its brokers: describe topics of these names, without resources."
    parser.add_argument("--bootstrap", metavar="HOST:PORT,...", help=words)
    add_client_properties(parser)
    add_profile(parser)
    parser.set_defaults(name=None, cluster=None, metrics="")


def run(options: Namespace) -> int:
    """Print resources for a person; the exit code."""
    try:
        if (options.bootstrap, options.command_config, options.profile) != (None, None, None):
            say("\n\n".join(_described_by(find_target(target_options(options)), options.words)))
            return 0
        chosen = store_options(options)
        named, store = parse_names(options.words), open_store(chosen)
        namespace = chosen.namespace or store.namespace
        found = choose(store.documents(namespace), named, namespace, EVERYTHING)
    except (CommandError, AdminError) as error:
        return complain(error)
    documents = sorted(found.values(), key=sort_key)
    topics = {name for kind, name in named if kind == Topic.kind_name}
    texts = [
        _described(document) + (_readers(document, chosen) if document["metadata"]["name"] in topics else "")
        for document in documents
    ]
    say("\n\n".join(texts) or f'no resources in namespace "{namespace}"')
    return 0


def _described_by(target: Target, words: list[str]) -> list[str]:
    """The topics of any Kafka. Raises CommandError and AdminError."""
    named = parse_names(words)
    if any(kind != Topic.kind_name or name is None for kind, name in named):
        raise CommandError("with --bootstrap name topics: kavka describe topic NAME --bootstrap HOST:PORT")
    return [f"topic: {name}\n{as_text(read_topic(target, name))}" for _, name in named if name is not None]


def _readers(document: Document, where: StoreOptions) -> str:
    """The readers of the topic that a resource declares, or why they are not told."""
    try:
        topic = resource_from(document)
        if not isinstance(topic, Topic):
            return ""
        _, namespace, cluster = cluster_key(topic)
        target = find_target(TargetOptions(cluster=cluster, where=replace(where, namespace=namespace)))
        return "\n" + as_text(read_topic(target, topic.topic_name))
    except (CommandError, AdminError, UnreadableError) as error:
        return f"\nreaders:\n  not told: {error}"


def _described(document: Document) -> str:
    status = {key: value for key, value in document["status"].items() if key not in {"conditions", "nodes"}}
    rows = [
        [
            condition["type"],
            condition["status"],
            condition["reason"],
            condition["lastTransitionTime"],
            condition["message"],
        ]
        for condition in document["status"].get("conditions", ())
    ]
    nodes = node_table(document)
    parts = [
        as_yaml({"kind": document["kind"], **document["metadata"]}),
        "spec:\n" + _indented(as_yaml(document.get("spec", {}))),
        "status:\n" + _indented(as_yaml(status) if status else "{}"),
        *(["nodes:\n" + _indented(nodes)] if nodes else []),
        "conditions:\n" + _indented(aligned([["TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"], *rows])),
    ]
    return "\n".join(parts)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
