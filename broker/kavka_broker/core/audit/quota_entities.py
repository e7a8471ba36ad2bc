"""The entity of a quota as the audit trail names it: by its parts, as JSON, so that no name can pass for another.

{"user": "alice", "client-id": null}        null is the default
{"client-id-prefix": "etl-"}                all client ids that begin so
{"topic": "orders"}                         a topic at one broker; "partition-of" each of its partitions
{"ip": "10.0.0.1"}                          an address
"""

import json
from typing import Final

from kavka_broker.core.quota.entity import Default, Entity, IpEntity, Part, Prefix, TopicEntity

CHARACTERS_MAX: Final = 1_024


def entity_key(entity: Entity | IpEntity | TopicEntity) -> str:
    """Return the parts as text; empty for one with longer names than `CHARACTERS_MAX`."""
    parts: dict[str, str | None] = {}
    for kind, part in _parts(entity):
        if isinstance(part, Prefix):
            parts[f"{kind}-prefix"] = part.text
        elif part is not None:
            parts[kind] = None if isinstance(part, Default) else part
    key = json.dumps(parts, ensure_ascii=False)
    return key if len(key) <= CHARACTERS_MAX else ""


def _parts(entity: Entity | IpEntity | TopicEntity) -> tuple[tuple[str, Part], ...]:
    match entity:
        case IpEntity(ip):
            return (("ip", ip),)
        case TopicEntity(topic, each_partition):
            return (("partition-of" if each_partition else "topic", topic),)
    return (("user", entity.user), ("client-id", entity.client_id))


def entity_words(key: str) -> str:
    """Return the entity as changes name it: `client-id=<default>,user=alice`."""
    parts = sorted(json.loads(key).items())
    return ",".join(f"{kind}={'<default>' if name is None else name}" for kind, name in parts)
