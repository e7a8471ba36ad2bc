"""`kavka approve`, `hold`, `release` and `restart`: let a roll go on, keep nodes from being restarted, or ask for it.

All of them set annotations of a KafkaCluster and touch nothing else of it, so that neither a person's field manager nor
a tool that applies it from a repository is disturbed.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.stored import part
from kavka_operator.cli.places import Place, Whereabouts, place_of
from kavka_operator.cli.stored import Document, not_found
from kavka_operator.cli.words import CommandError, complain, say
from kavka_operator.reconcile.rollout.restart import RESTART
from kavka_operator.reconcile.rollout.roll import APPROVE, EVERY_NODE, HOLD_NODES, names_in

Change = Callable[[Document], tuple[Mapping[str, str | None], str]]
"""The annotations to set on a KafkaCluster, and words for what was done. Raises CommandError."""


def approve(name: str | None, asked: Whereabouts, plan: str | None) -> int:
    """Approve the roll that waits, or only `plan`; the exit code."""
    return _steer(name, asked, lambda document: _approval(document, plan))


def hold(name: str | None, asked: Whereabouts, nodes: str | None) -> int:
    """Keep nodes (ids with commas between), or all, from being restarted; the exit code."""
    return _steer(name, asked, lambda document: _hold(document, _ids(nodes)))


def release(name: str | None, asked: Whereabouts, nodes: str | None) -> int:
    """Hold nodes (ids with commas between), or any, no longer; the exit code."""
    return _steer(name, asked, lambda document: _release(document, _ids(nodes)))


def restart(name: str | None, asked: Whereabouts) -> int:
    """Ask for a restart of all nodes, one after the other by the rules of a roll; the exit code."""
    moment = datetime.now(UTC).isoformat(timespec="seconds")
    return _steer(name, asked, lambda _: ({RESTART: moment}, "restarts: see `kavka get kvc` for its roll"))


def cluster_document(place: Place, name: str | None, namespace: str) -> Document:
    """The KafkaCluster of a name, or the only one of the namespace. Raises CommandError."""
    kind = KafkaCluster.kind_name
    found = {key[2]: shown for key, shown in place.documents(namespace).items() if key[0] == kind}
    if name is not None:
        if name not in found:
            raise CommandError(f"{not_found(kind, name, namespace)} of {place.name}")
        return found[name]
    if len(found) != 1:
        which = f"name one of {', '.join(sorted(found))}" if found else "there is none"
        raise CommandError(f'{which} in namespace "{namespace}" of {place.name}')
    return next(iter(found.values()))


def _steer(name: str | None, asked: Whereabouts, change: Change) -> int:
    try:
        place = place_of(asked)
        document = cluster_document(place, name, asked.namespace or place.namespace)
        annotations, words = change(document)
        place.annotate(document, annotations)
    except CommandError as error:
        return complain(error)
    say(f"kafkacluster.kavka.dev/{document['metadata']['name']} {words}")
    return 0


def _approval(document: Document, plan: str | None) -> tuple[Mapping[str, str | None], str]:
    """The approval of the plan that the status names: a plan is its settings, so a later change needs its own."""
    name, status = document["metadata"]["name"], part(document, "status")
    rollout = part(status, "rollout")
    waiting = str(rollout.get("plan") or "")
    if not waiting:
        raise CommandError(f'KafkaCluster "{name}": no roll is on, so there is nothing to approve')
    if plan is not None and plan != waiting:
        raise CommandError(f'KafkaCluster "{name}": the roll that is on is {waiting}, not {plan}; see `kavka describe`')
    if risks := rollout.get("atRisk"):
        say(f"at risk while nodes restart: {', '.join(map(str, risks))}")
    return {APPROVE: waiting}, f"approved {waiting}"


def _hold(document: Document, nodes: Sequence[str]) -> tuple[Mapping[str, str | None], str]:
    known = [str(node.get("id")) for node in part(document, "status").get("nodes") or ()]
    if strangers := [node for node in nodes if known and node not in known]:
        raise CommandError(f"there is no node {strangers[0]}; there are {', '.join(known)}")
    held = _held(document)
    if not nodes or EVERY_NODE in held:
        return {HOLD_NODES: EVERY_NODE}, "held: no node is restarted"
    every = sorted({*held, *nodes}, key=_number)
    return {HOLD_NODES: ",".join(every)}, f"held: nodes {', '.join(every)} are not restarted"


def _release(document: Document, nodes: Sequence[str]) -> tuple[Mapping[str, str | None], str]:
    held = _held(document)
    if part(part(document, "spec"), "rollout").get("hold"):
        raise CommandError("spec.rollout.hold is true, which holds all nodes; change it where the resource is written")
    if nodes and EVERY_NODE in held:
        raise CommandError("all nodes are held together; release all, then hold those that are to stay")
    left = [node for node in held if nodes and node not in nodes]
    if not left:
        return {HOLD_NODES: None}, "released: every node may be restarted"
    return {HOLD_NODES: ",".join(left)}, f"released; held are nodes {', '.join(left)}"


def _held(document: Document) -> list[str]:
    return names_in(str(part(part(document, "metadata"), "annotations").get(HOLD_NODES) or ""))


def _ids(nodes: str | None) -> list[str]:
    """The ids that a person typed. Raises CommandError."""
    found = names_in(nodes or "")
    if strangers := [word for word in found if not word.isdecimal()]:
        raise CommandError(f'--nodes: "{strangers[0]}" is no id of a node; write for example 1,2')
    return found


def _number(node: str) -> tuple[int, str]:
    return (int(node) if node.isdecimal() else -1), node
