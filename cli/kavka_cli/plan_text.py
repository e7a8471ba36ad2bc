"""What `kavka plan` says: changes field by field, what is done, what is at risk and what waits. Pure."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from kavka_cli.dry_run import Foreseen, words_of
from kavka_cli.field_changes import FieldChange
from kavka_cli.local_resources import full_name
from kavka_operator.api.kinds import Key
from kavka_operator.domain.name_lists import counted, named
from kavka_operator.domain.units import size
from kavka_operator.platform.kubernetes.objects.names import GATE
from kavka_operator.reconcile.impact import Emptied, Forecast, Restart

NOTHING, REFUSED, SOMETHING = 0, 1, 2
"""Exit codes, as those of `terraform plan -detailed-exitcode`."""
VALUE_LENGTH_MAX = 200


@dataclass(frozen=True, slots=True)
class Planned:
    """The outcome that one resource would have.

    `change` is created, configured, unchanged or refused. `refused` are the words of who would refuse it, `warnings`
    those of the API server; `unknown` says what cannot be known from here, and why.
    """

    key: Key
    change: str
    fields: Sequence[FieldChange] = ()
    foreseen: Foreseen = field(default_factory=Foreseen)
    refused: Sequence[str] = ()
    warnings: Sequence[str] = ()
    unknown: Sequence[str] = ()

    @property
    def refusals(self) -> list[str]:
        """Reasons why it would not be done as it is written, or not all of it."""
        return [*self.refused, *self.foreseen.obstacles, *self.foreseen.nodes.refused]


def exit_code(found: Sequence[Planned]) -> int:
    """The exit code that a plan gives."""
    if any(planned.refusals for planned in found):
        return REFUSED
    return SOMETHING if any(planned.change != "unchanged" for planned in found) else NOTHING


def as_text(found: Sequence[Planned]) -> Iterator[str]:
    """The plan as a person reads it."""
    for planned in found:
        yield f"{full_name(planned.key[0], planned.key[2])} {planned.change}"
        for line in _lines(planned):
            yield f"  {line}"
    yield _counts(found)


def _lines(planned: Planned) -> Iterator[str]:
    nodes = planned.foreseen.nodes
    for change in planned.fields:
        yield f"{change.path}: {_value(change.was)} -> {_value(change.will_be)}"
    for action in planned.foreseen.actions:
        yield f"does: {action}"
    for line in words_of(nodes, restarts=False):
        yield f"does: {line}"
    yield from _restarts(nodes.restarts)
    yield from map(_emptied, nodes.empties)
    for words in nodes.at_risk:
        yield f"at risk: {words}: unavailable while a node of it restarts"
    for words in nodes.in_the_way:
        yield f"in the way now: {words}"
    for words in (*planned.foreseen.waits, *nodes.waits):
        yield f"waits: {words}"
    for words in planned.unknown:
        yield f"not known: {words}"
    for words in planned.warnings:
        yield f"warning: {words}"
    for words in planned.refusals:
        yield f"refused: {words}"


def _restarts(restarts: Sequence[Restart]) -> Iterator[str]:
    """The restarts in their order; those that go together stand in one line."""
    for wave in sorted({restart.wave for restart in restarts}):
        together = [restart for restart in restarts if restart.wave == wave]
        head = "restarts" if wave == 1 else "then"
        yield f"{head}: {'; '.join(f'{restart.name}, as {restart.reason}' for restart in together)}"


def _emptied(pool: Emptied) -> str:
    """The words for what restarts take from a pool whose volumes end with their pods, and how it comes back."""
    known = [] if pool.replicas is None else [counted(pool.replicas, "replica")]
    known += [] if pool.size is None else [size(pool.size)]
    copied = f" ({', '.join(known)})" if known else ""
    return (
        f"empties: {named(pool.nodes)}, as storage of pool {pool.pool} ends with the pod (type: Ephemeral);"
        f" each new pod waits at its scheduling gate {GATE} until no record counts on its broker alone,"
        f" and copies the replicas again from other brokers{copied}"
    )


def _value(value: Any) -> str:
    if value is None:
        return "(none)"
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= VALUE_LENGTH_MAX else f"{text[:VALUE_LENGTH_MAX]}..."


def _counts(found: Sequence[Planned]) -> str:
    words = {"created": "to create", "configured": "to change", "unchanged": "unchanged", "refused": "refused"}
    counts = [(sum(planned.change == change for planned in found), said) for change, said in words.items()]
    restarts = sum(len(planned.foreseen.nodes.restarts) for planned in found)
    return ", ".join([*(f"{count} {said}" for count, said in counts if count), counted(restarts, "restart")])


def as_json(found: Sequence[Planned]) -> str:
    """The plan as programs read it."""
    whole = {"exitCode": exit_code(found), "resources": [_document(planned) for planned in found]}
    return json.dumps(whole, indent=2, default=str)


def _document(planned: Planned) -> dict[str, Any]:
    kind, namespace, name = planned.key
    found: dict[str, Any] = {
        "kind": kind,
        "namespace": namespace,
        "name": name,
        "change": planned.change,
        "fields": [{"path": change.path, "was": change.was, "willBe": change.will_be} for change in planned.fields],
        "actions": [*planned.foreseen.actions, *words_of(planned.foreseen.nodes, restarts=False)],
        "waits": list(planned.foreseen.waits),
        "refused": planned.refusals,
        "warnings": list(planned.warnings),
        "unknown": list(planned.unknown),
    }
    if planned.key[0] == "KafkaCluster":
        found["nodes"] = _nodes(planned.foreseen.nodes)
    return found


def _nodes(nodes: Forecast) -> dict[str, Any]:
    return {
        "plan": nodes.plan,
        "starts": [action.node for action in nodes.starts],
        "restarts": [asdict(restart) for restart in nodes.restarts],
        "drains": [{"node": node.node, "replicas": node.replicas, "bytes": node.size} for node in nodes.drains],
        "empties": [
            {"pool": pool.pool, "nodes": list(pool.nodes), "replicas": pool.replicas, "bytes": pool.size}
            for pool in nodes.empties
        ],
        "resizes": [{"node": node.node, "reason": node.reason} for node in nodes.resizes],
        "grows": [{"node": node.node, "volume": node.volume, "size": node.size} for node in nodes.grows],
        "atRisk": list(nodes.at_risk),
        "inTheWay": list(nodes.in_the_way),
        "waits": list(nodes.waits),
    }
