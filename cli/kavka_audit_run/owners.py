"""Whose a topic or a principal is: labels of resources, and of a file for what has no resource.

    cluster: {owner: platform}
    topics:
      orders: {owner: shop, cost-center: "17"}
    principals:
      User:alice: {owner: shop}

The file wins over the resources. The annotation `kavka.dev/owner` stands for a label `owner`, whose value may be any
text. A KafkaUser labels its user, and so does a ClientQuota of a user.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from kavka_cli.output import CommandError
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.kinds import AnyResource
from kavka_operator.api.quota import entity_of
from kavka_operator.api.topic import Topic
from kavka_operator.api.user import KafkaUser

OWNER: Final = "owner"
ANNOTATION: Final = "kavka.dev/owner"
KINDS: Final = {"topics": "topic", "principals": "principal"}
LABELS_MAX: Final = 1_000_000
"""Labels in all: what a file and the resources may name."""


class Key(NamedTuple):
    """A topic, a principal, or the cluster, which needs no name: each may have labels."""

    kind: str
    name: str


Labels = Mapping[Key, Mapping[str, str]]


def labels_of(resources: Iterable[AnyResource], file: Path | None, wanted: str) -> list[dict[str, object]]:
    """Return the rows of the labels that are wanted, a list of names with commas. Raises CommandError."""
    names = [name.strip() for name in wanted.split(",") if name.strip()]
    if not names:
        raise CommandError(f"--by: {wanted!r} names no label")
    found: dict[Key, dict[str, str]] = {}
    for labels in (dict(_of_resources(resources)), _of_file(file) if file is not None else {}):
        for key, values in labels.items():
            found.setdefault(key, {}).update(values)
    rows: list[dict[str, object]] = [
        {**key._asdict(), "label": name, "value": values[name]}
        for key, values in sorted(found.items())
        for name in names
        if name in values
    ]
    if len(rows) > LABELS_MAX:
        raise CommandError(f"--owners: {len(rows):,} labels; {LABELS_MAX:,} are read")
    return rows


def _of_resources(resources: Iterable[AnyResource]) -> Iterator[tuple[Key, Mapping[str, str]]]:
    for resource in resources:
        if (key := _key(resource)) is not None:
            labels = dict(resource.metadata.labels)
            if owner := resource.metadata.annotations.get(ANNOTATION):
                labels[OWNER] = owner
            yield key, labels


def _key(resource: AnyResource) -> Key | None:
    if isinstance(resource, KafkaCluster):
        return Key("cluster", "")
    if isinstance(resource, Topic):
        return Key("topic", resource.topic_name)
    if isinstance(resource, KafkaUser):
        return Key("principal", resource.principal)
    user = getattr(entity_of(resource.spec.entity), "user", None)
    return Key("principal", f"User:{user}") if isinstance(user, str) else None


def _of_file(file: Path) -> Labels:
    """Return the labels of a file. Raises CommandError, which names the field."""
    try:
        found = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as problem:
        raise CommandError(f"--owners: {file} cannot be read: {problem}") from problem
    fields = _object(found, file, "the file")
    if unknown := sorted(map(str, fields.keys() - {"cluster", *KINDS})):
        raise CommandError(f"--owners: {file}: {unknown[0]}: it is none of cluster, topics, principals")
    labels = {Key("cluster", ""): _values(fields.get("cluster") or {}, file, "cluster")}
    for field, kind in KINDS.items():
        for name, values in _object(fields.get(field) or {}, file, field).items():
            labels[Key(kind, str(name))] = _values(values, file, f"{field}.{name}")
    return labels


def _values(found: Any, file: Path, field: str) -> dict[str, str]:
    values = _object(found, file, field)
    for name, value in values.items():
        if isinstance(value, dict | list) or value is None:
            raise CommandError(f"--owners: {file}: {field}.{name}: no text")
    return {str(name): str(value) for name, value in values.items()}


def _object(found: Any, file: Path, field: str) -> dict[Any, Any]:
    if not isinstance(found, dict):
        raise CommandError(
            f"--owners: {file}: {field}: no map of names; write as in `topics: {{orders: {{owner: shop}}}}`"
        )
    return found
