"""What requests of administrators have changed, for the audit trail: only what their answers have granted.

A value that is secret, or of a key that is not known here, is not told: HIDDEN stands in its place. A change of
configs tells each key with the value that it had before.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from kavka_broker.core.authorization.acl_types import Operation, PatternType, Permission, ResourceType
from kavka_broker.core.config.broker import definition_of
from kavka_broker.core.config.definition import Definition
from kavka_broker.core.config.group_table import GROUP_KEYS
from kavka_broker.core.config.topic_table import TOPIC_KEYS
from kavka_broker.core.metadata.image.configs import Resource
from kavka_broker.core.metadata.image.configs import ResourceType as Configured

HIDDEN: Final = "(hidden)"
UNKNOWN: Final = "(unknown)"
EXPIRY: Final = "expiry.timestamp.ms"
TRANSACTIONAL_ID: Final = "transactional_id"
NO_COORDINATOR: Final = -1
"""The coordinator's epoch of a marker that an administrator writes."""
SET, REMOVE, APPEND, SUBTRACT = range(4)
#: Signs of the operations that add to a list, or take away from it.
SIGNS: Final = {APPEND: "+", SUBTRACT: "-"}
NAMES: Final = {
    Configured.TOPIC: "topic",
    Configured.BROKER: "broker",
    Configured.BROKER_LOGGER: "broker_logger",
    Configured.CLIENT_METRICS: "client_metrics",
    Configured.GROUP: "group",
}
#: Keys of resources that are no brokers.
OF_OTHERS: Final[Mapping[int, Mapping[str, Definition]]] = {
    Configured.TOPIC: TOPIC_KEYS,
    Configured.GROUP: GROUP_KEYS,
}
#: The overrides of each resource as they were before.
Before = Mapping[Resource, Mapping[str, str]]


class Change(NamedTuple):
    """A change of one resource. `key` is empty where the whole resource was made or taken away; a value of None is
    none.
    """

    operation: str  # CREATE, ALTER, ALTER_CONFIGS or DELETE
    resource_type: str
    resource: str
    key: str = ""
    value: str | None = None
    previous: str | None = None


Read = Callable[[Any, Any, Before], Iterator[Change]]


def topics_created(request: Any, response: Any, before: Before) -> Iterator[Change]:
    """Give the topics that CreateTopics has made."""
    if not request.validate_only:
        for topic in response.topics:
            if not topic.error_code:
                yield Change("CREATE", "topic", topic.name)


def topics_deleted(request: Any, response: Any, before: Before) -> Iterator[Change]:
    """Give the topics that DeleteTopics has taken away."""
    for topic in response.responses:
        if not topic.error_code:
            yield Change("DELETE", "topic", topic.name or topic.topic_id.hex())


def topics_grown(request: Any, response: Any, before: Before) -> Iterator[Change]:
    """Give the topics to which CreatePartitions has added."""
    wanted = {topic.name: topic.count for topic in request.topics}
    if not request.validate_only:
        for topic in response.results:
            if not topic.error_code:
                yield Change("ALTER", "topic", topic.name, "partitions", str(wanted.get(topic.name)))


def configs_altered(request: Any, response: Any, before: Before) -> Iterator[Change]:
    """Give the keys that IncrementalAlterConfigs has changed."""
    for resource in _granted(request, response):
        was = before.get(Resource(resource.resource_type, resource.resource_name), {})
        for config in resource.configs:
            value = None if config.config_operation == REMOVE else config.value
            yield _of_config(resource, config.name, value, was, SIGNS.get(config.config_operation, ""))


def configs_replaced(request: Any, response: Any, before: Before) -> Iterator[Change]:
    """Give the keys that AlterConfigs has changed: what it does not name goes back to its default."""
    for resource in _granted(request, response):
        was = before.get(Resource(resource.resource_type, resource.resource_name), {})
        wanted = {config.name: config.value for config in resource.configs}
        for key in dict.fromkeys((*wanted, *was)):
            if wanted.get(key) != was.get(key):
                yield _of_config(resource, key, wanted.get(key), was)


def _granted(request: Any, response: Any) -> Iterator[Any]:
    answers = {(answer.resource_type, answer.resource_name): answer.error_code for answer in response.responses}
    for resource in () if request.validate_only else request.resources:
        if answers.get((resource.resource_type, resource.resource_name)) == 0:
            yield resource


def _of_config(resource: Any, key: str, value: str | None, was: Mapping[str, str], sign: str = "") -> Change:
    kind, previous = resource.resource_type, was.get(key)
    if is_hidden(kind, key):
        value, previous = (None if text is None else HIDDEN for text in (value, previous))
    name = NAMES[kind] if kind in NAMES else str(kind)
    told = value if value is None else sign + value
    return Change("ALTER_CONFIGS", name, resource.resource_name, key, told, previous)


def is_hidden(kind: int, key: str) -> bool:
    """Whether the value of a key may be a secret: one that is marked so, or that is not known here."""
    if kind in (Configured.CLIENT_METRICS, Configured.BROKER_LOGGER):
        return False
    definition = definition_of(key)
    if kind in OF_OTHERS:
        definition = OF_OTHERS[kind].get(key)
    return definition is None or definition.sensitive


def rules_created(request: Any, response: Any, before: Before) -> Iterator[Change]:
    """Give the access rules that CreateAcls has made."""
    for rule, result in zip_longest(request.creations, response.results):
        if rule is not None and result is not None and not result.error_code:
            yield Change("CREATE", "acl", _rule(rule, rule.resource_pattern_type))


def rules_deleted(request: Any, response: Any, before: Before) -> Iterator[Change]:
    """Give the access rules that DeleteAcls has taken away."""
    for found in response.filter_results:
        for rule in found.matching_acls:
            if not rule.error_code:
                yield Change("DELETE", "acl", _rule(rule, rule.pattern_type))


def _rule(rule: Any, pattern_type: int) -> str:
    """A rule as one line: `ALLOW User:alice from * READ topic LITERAL orders`."""
    permission, operation = Permission(rule.permission_type).name, Operation(rule.operation).name
    kind, pattern = ResourceType(rule.resource_type).name.lower(), PatternType(pattern_type).name
    return f"{permission} {rule.principal} from {rule.host} {operation} {kind} {pattern} {rule.resource_name}"


def quotas_altered(request: Any, response: Any, before: Before) -> Iterator[Change]:
    """Give the limits that AlterClientQuotas has set or taken away."""
    answers = {_entity(entry): entry.error_code for entry in response.entries}
    for entry in () if request.validate_only else request.entries:
        if answers.get(entity := _entity(entry)) == 0:
            for limit in entry.ops:
                value = None if limit.remove else f"{limit.value:.15g}"
                yield Change("ALTER_CONFIGS", "client_quota", entity, limit.key, value)


def _entity(entry: Any) -> str:
    parts = ((part.entity_type, "<default>" if part.entity_name is None else part.entity_name) for part in entry.entity)
    return ",".join("=".join(part) for part in sorted(parts))


def users_altered(request: Any, response: Any, before: Before) -> Iterator[Change]:
    """Give the users whose SCRAM passwords AlterUserScramCredentials has changed; nothing of the passwords."""
    answers = {result.user: result.error_code for result in response.results}
    for user in request.upsertions:
        if answers.get(user.name) == 0:
            yield Change("ALTER", "user", user.name, f"scram mechanism {user.mechanism}", HIDDEN)
    for user in request.deletions:
        if answers.get(user.name) == 0:
            yield Change("ALTER", "user", user.name, f"scram mechanism {user.mechanism}")


def replicas_moved(request: Any, response: Any, before: Before) -> Iterator[Change]:
    """Give the partitions whose replicas AlterPartitionReassignments moves, or moves no longer."""
    answers = {
        (topic.name, part.partition_index): part.error_code for topic in response.responses for part in topic.partitions
    }
    for topic in () if response.error_code else request.topics:
        for part in topic.partitions:
            if answers.get((topic.name, part.partition_index)) == 0:
                replicas = None if part.replicas is None else ",".join(map(str, part.replicas))
                yield Change("ALTER", "topic", topic.name, f"replicas of partition {part.partition_index}", replicas)


def broker_unregistered(request: Any, response: Any, before: Before) -> Iterator[Change]:
    """Give the broker that UnregisterBroker has made the cluster forget."""
    if not response.error_code:
        yield Change("DELETE", "broker", str(request.broker_id))


def voter_added(request: Any, response: Any, before: Before) -> Iterator[Change]:
    """Give the controller to which AddRaftVoter has given a vote."""
    if not response.error_code:
        yield Change("CREATE", "voter", str(request.voter_id))


def voter_removed(request: Any, response: Any, before: Before) -> Iterator[Change]:
    """Give the controller from which RemoveRaftVoter has taken its vote."""
    if not response.error_code:
        yield Change("DELETE", "voter", str(request.voter_id))


def features_updated(request: Any, response: Any, before: Before) -> Iterator[Change]:
    """Give the feature levels that UpdateFeatures has set."""
    if not response.error_code and not request.validate_only:
        for update in request.feature_updates:
            yield Change("ALTER", "feature", update.feature, "level", str(update.max_version_level))


def leaders_elected(request: Any, response: Any, before: Before) -> Iterator[Change]:
    """Give the partitions that ElectLeaders has given another leader, and by which kind of election."""
    kind = {0: "preferred", 1: "unclean"}.get(request.election_type, str(request.election_type))
    for topic in () if response.error_code else response.replica_election_results:
        for part in topic.partition_result:
            if not part.error_code:
                yield Change("ALTER", "topic", topic.topic, f"leader of partition {part.partition_id}", kind)


def records_deleted(request: Any, response: Any, before: Before) -> Iterator[Change]:
    """Give the partitions whose log DeleteRecords has cut, and the offset at which it begins now."""
    for topic in response.topics:
        for part in topic.partitions:
            if not part.error_code:
                key = f"start of partition {part.partition_index}"
                yield Change("DELETE", "topic", topic.name, key, str(part.low_watermark))


def logs_moved(request: Any, response: Any, before: Before) -> Iterator[Change]:
    """Give the replicas that AlterReplicaLogDirs moves to another directory."""
    answers = {
        (topic.topic_name, part.partition_index): part.error_code
        for topic in response.results
        for part in topic.partitions
    }
    for directory in request.dirs:
        for topic in directory.topics:
            for index in topic.partitions:
                if answers.get((topic.name, index)) == 0:
                    yield Change("ALTER", "topic", topic.name, f"directory of partition {index}", directory.path)


def groups_deleted(request: Any, response: Any, before: Before) -> Iterator[Change]:
    """Give the groups that DeleteGroups has taken away."""
    for group in response.results:
        if not group.error_code:
            yield Change("DELETE", "group", group.group_id)


def offsets_deleted(request: Any, response: Any, before: Before) -> Iterator[Change]:
    """Give the offsets that OffsetDelete has made a group forget."""
    for topic in () if response.error_code else response.topics:
        for part in topic.partitions:
            if not part.error_code:
                yield Change("DELETE", "group", request.group_id, f"offset of {topic.name}-{part.partition_index}")


def share_offsets_altered(request: Any, response: Any, before: Before) -> Iterator[Change]:
    """Give the offsets that AlterShareGroupOffsets has set."""
    offsets = {
        (topic.topic_name, part.partition_index): part.start_offset
        for topic in request.topics
        for part in topic.partitions
    }
    for topic in () if response.error_code else response.responses:
        for part in topic.partitions:
            if not part.error_code:
                place = topic.topic_name, part.partition_index
                key = f"offset of {topic.topic_name}-{part.partition_index}"
                yield Change("ALTER", "group", request.group_id, key, str(offsets[place]))


def share_offsets_deleted(request: Any, response: Any, before: Before) -> Iterator[Change]:
    """Give the topics of which DeleteShareGroupOffsets has made a group forget its offsets."""
    for topic in () if response.error_code else response.responses:
        if not topic.error_code:
            yield Change("DELETE", "group", request.group_id, f"offsets of {topic.topic_name}")


def is_only_asked(request: Any) -> bool:
    """Whether a request asks what would happen, and changes nothing."""
    return bool(getattr(request, "validate_only", False))


def transactions_ended(request: Any, results: Any) -> Iterator[Change]:
    """Give the partitions in which an administrator has ended a transaction with WriteTxnMarkers. Those of
    coordinators change nothing that is not decided.
    """
    ended = {marker.producer_id: marker for marker in request.markers if marker.coordinator_epoch == NO_COORDINATOR}
    for result in results if ended else ():
        marker = ended.get(result.producer_id)
        if marker is None:
            continue
        outcome = "committed" if marker.transaction_result else "aborted"
        value = f"{outcome}: producer {marker.producer_id}, epoch {marker.producer_epoch}"
        for topic in result.topics:
            for part in topic.partitions:
                if not part.error_code:
                    key = f"transaction in partition {part.partition_index}"
                    yield Change("ALTER", "topic", topic.name, key, value)


def transaction_aborted(transactional_id: str, reason: str) -> Change:
    """The change that the coordinator has begun to abort a transaction by itself, and has fenced its producer."""
    return Change("ALTER", TRANSACTIONAL_ID, transactional_id, "transaction", f"aborted: {reason}")


def token_made(request: Any, response: Any, before: Before) -> Iterator[Change]:
    """Give the delegation token that CreateDelegationToken has made; nothing of its secret."""
    if not response.error_code:
        owner = f"{response.principal_type}:{response.principal_name}"
        yield Change("CREATE", "delegation_token", response.token_id, "owner", owner)


def token_changed(request: Any, response: Any, before: Before) -> Iterator[Change]:
    """Give the delegation token whose expiry RenewDelegationToken or ExpireDelegationToken has moved, or that it has
    removed. A request names it by its secret alone: its id is what was there before.
    """
    if not response.error_code:
        token_id, was = next(((resource.name, kept) for resource, kept in before.items()), (UNKNOWN, {}))
        if getattr(request, "expiry_time_period_ms", 0) < 0:
            yield Change("DELETE", "delegation_token", token_id)
        else:
            expires_ms = str(response.expiry_timestamp_ms)
            yield Change("ALTER", "delegation_token", token_id, EXPIRY, expires_ms, was.get(EXPIRY))


ACLS_DELETED: Final = 31
ELECTED: Final = 43
#: By API key: how its changes are read.
CHANGES: Final[Mapping[int, Read]] = {
    19: topics_created,
    20: topics_deleted,
    21: records_deleted,
    30: rules_created,
    ACLS_DELETED: rules_deleted,
    33: configs_replaced,
    34: logs_moved,
    37: topics_grown,
    42: groups_deleted,
    ELECTED: leaders_elected,
    38: token_made,
    39: token_changed,
    40: token_changed,
    44: configs_altered,
    45: replicas_moved,
    47: offsets_deleted,
    49: quotas_altered,
    51: users_altered,
    57: features_updated,
    64: broker_unregistered,
    80: voter_added,
    81: voter_removed,
    91: share_offsets_altered,
    92: share_offsets_deleted,
}
#: APIs that change overrides, and are asked for what was there before.
OF_CONFIGS: Final = (33, 44)
#: APIs that name a delegation token by its secret.
OF_TOKENS: Final = (39, 40)
