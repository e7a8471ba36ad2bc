"""Events as JSON of the Open Cybersecurity Schema Framework (OCSF 1.8.0), which security tools read.

A login is Authentication (3002), a start or a stop Application Lifecycle (6002), all else API Activity (6003): refusals
are blocked, throttling is delayed, changes and use are allowed. A change has its key and both values as data of the
resource, sums stand in `unmapped`.

Times are milliseconds since 1970. `metadata.uid` is the name of the entry: its chain and sequence.
"""

import json
from typing import Final

from kavka_broker.core.audit.events import Changed, Denied, Happening, Lifecycle, LoggedIn, Tally
from kavka_broker.core.audit.quota_entities import entity_words
from kavka_broker.core.audit.usage import OTHERS, Throttling, Use

VERSION: Final = "1.8.0"
CREATE, READ, UPDATE, DELETE, OTHER = 1, 2, 3, 4, 99
ACTIVITIES: Final = {
    "CREATE": CREATE,
    "WRITE": CREATE,
    "IDEMPOTENT_WRITE": CREATE,
    "READ": READ,
    "DESCRIBE": READ,
    "DESCRIBE_CONFIGS": READ,
    "ALTER": UPDATE,
    "ALTER_CONFIGS": UPDATE,
    "DELETE": DELETE,
}
"""The activity of OCSF for an operation of Kafka; of an operation that is not here, OTHER."""
LOGON: Final = 1
LIFECYCLES: Final = {"START": 3, "STOP": 4}
"""The activity of OCSF for what a node does."""
SUCCESS, FAILURE = 1, 2
INFORMATIONAL, LOW = 1, 2
BROKER: Final = "Broker"
"""The type of the principal of what a node does by itself."""
UNKNOWN_USER, KNOWN_USER = 0, 1
DENIED, BLOCKED = 2, 2
ALLOWED = 1  # the action, and the disposition
MODIFIED, DELAYED = 4, 14
OPERATIONS: Final = {"produce": "WRITE", "topic_produce": "WRITE", "fetch": "READ", "topic_fetch": "READ"}
"""What a quota of this type delays; others delay anything."""
DETAILS: Final = {"CONNECT": "MAX_CONNECTIONS_PER_IP_REACHED"}
"""Why an operation is refused, where no rule of access is the reason."""
TO_JSON: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
Event = dict[str, object]


def event_of(tally: Tally, uid: str) -> bytes:
    """Return the event as JSON in UTF-8."""
    happening = tally.happening
    event = _told(happening)
    common: Event = {
        "count": tally.times,
        "time": tally.start_ms,
        "start_time": tally.start_ms,
        "end_time": tally.end_ms,
        "metadata": {
            "version": VERSION,
            "uid": uid,
            "product": {"name": "Kavka", "vendor_name": "Kavka"},
            "profiles": [] if isinstance(happening, LoggedIn | Lifecycle) else ["security_control"],
        },
    }
    return TO_JSON.encode(event | common).encode(errors="replace")


def _told(happening: Happening) -> Event:
    match happening:
        case Denied():
            return refusal(happening)
        case LoggedIn():
            return login(happening)
        case Changed():
            return alteration(happening)
        case Lifecycle():
            return lifecycle(happening)
        case Use():
            return use(happening)
        case Throttling():
            return throttling(happening)


def refusal(denied: Denied) -> Event:
    """Return what an event says of a refusal."""
    return _api_activity(denied.operation, denied.principal, denied.address) | {
        "severity_id": LOW,
        "status_id": FAILURE,
        "status_detail": DETAILS.get(denied.operation, f"{denied.resource_type.upper()}_AUTHORIZATION_FAILED"),
        "action_id": DENIED,
        "disposition_id": BLOCKED,
        "resources": [{"type": denied.resource_type, "name": denied.resource}],
    }


def alteration(changed: Changed) -> Event:
    """Return what an event says of a change."""
    change = changed.change
    resource: Event = {"type": change.resource_type, "name": change.resource}
    if change.key:
        resource["data"] = {"key": change.key, "value": change.value, "previous": change.previous}
    activity = _api_activity(change.operation, changed.principal, changed.address, changed.client_id)
    return activity | {"action_id": ALLOWED, "disposition_id": ALLOWED, "resources": [resource]}


def use(used: Use) -> Event:
    """Return what an event says of the use of a topic."""
    sums: Event = {"bytes": used.size_bytes}
    if used.records is not None:
        sums["records"] = used.records
    return _api_activity(used.operation, used.principal, used.address, used.client_id) | {
        "action_id": ALLOWED,
        "disposition_id": ALLOWED,
        "resources": [{"type": "topic", "name": used.topic}],
        "unmapped": {"kafka": sums},
    }


def throttling(throttled: Throttling) -> Event:
    """Return what an event says of delays by a quota."""
    operation = OPERATIONS.get(throttled.quota_type, throttled.quota_type.upper())
    return _api_activity(operation, throttled.principal, throttled.address, throttled.client_id) | {
        "action_id": MODIFIED,
        "disposition_id": DELAYED,
        "resources": [{"type": "client_quota", "name": entity_words(throttled.entity) if throttled.entity else OTHERS}],
        "unmapped": {
            "kafka": {
                "quota_type": throttled.quota_type,
                "quota_entity": json.loads(throttled.entity) if throttled.entity else None,
                "quota_limit": throttled.limit,
                "throttle_time_ms": throttled.throttle_time_ms,
                "throttle_time_ms_max": throttled.throttle_time_ms_max,
            }
        },
    }


def _api_activity(operation: str, principal: str, address: str, client_id: str | None = None) -> Event:
    """What events of class 6003 have in common; they tell of a success unless they say otherwise."""
    activity = ACTIVITIES.get(operation, OTHER)
    user_type, _, name = principal.partition(":")
    actor: Event = {"user": {"name": name, "type": user_type, "type_id": KNOWN_USER}}
    if client_id is not None:
        actor["app_name"] = client_id
    return {
        "category_uid": 6,
        "class_uid": 6003,
        "activity_id": activity,
        "type_uid": 6003 * 100 + activity,
        "severity_id": INFORMATIONAL,
        "status_id": SUCCESS,
        "actor": actor,
        "api": {"operation": operation, "service": {"name": "kafka"}},
        "src_endpoint": {"name": f"kavka node {name}"} if user_type == BROKER else _endpoint(address),
    }


def _endpoint(address: str) -> Event:
    return {"ip": address} if address else {"name": OTHERS}


def login(logged_in: LoggedIn) -> Event:
    """Return what an event says of a login."""
    is_known = logged_in.user is not None
    return {
        "category_uid": 3,
        "class_uid": 3002,
        "activity_id": LOGON,
        "type_uid": 3002 * 100 + LOGON,
        "severity_id": INFORMATIONAL if is_known else LOW,
        "status_id": SUCCESS if is_known else FAILURE,
        "auth_protocol": logged_in.protocol,
        "auth_protocol_id": 99,
        "user": {
            "name": logged_in.user if is_known else "unknown",
            "type_id": KNOWN_USER if is_known else UNKNOWN_USER,
        },
        "service": {"name": f"kafka listener {logged_in.listener}"},
        "src_endpoint": _endpoint(logged_in.address),
    }


def lifecycle(told: Lifecycle) -> Event:
    """Return what an event says of a node's start or stop."""
    activity = LIFECYCLES[told.operation]
    return {
        "category_uid": 6,
        "class_uid": 6002,
        "activity_id": activity,
        "type_uid": 6002 * 100 + activity,
        "severity_id": INFORMATIONAL,
        "status_id": SUCCESS,
        "app": {"name": f"kavka node {told.node}", "vendor_name": "Kavka", "version": told.version},
    }
