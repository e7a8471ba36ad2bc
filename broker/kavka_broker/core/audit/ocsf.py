"""Events as JSON of the Open Cybersecurity Schema Framework (OCSF 1.8.0), which security tools read.

- a refusal: API Activity (6003), blocked;
- a login: Authentication (3002), Logon;
- a change by an administrator: API Activity (6003), allowed, with the key and both values as data of the resource.

Times are milliseconds since 1970. `metadata.uid` is the name of the entry: its chain and sequence.
"""

import json
from typing import Final

from kavka_broker.core.audit.happenings import Changed, Denied, Happening, LoggedIn, Tally

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
SUCCESS, FAILURE = 1, 2
INFORMATIONAL, LOW = 1, 2
UNKNOWN_USER, KNOWN_USER = 0, 1
DENIED, BLOCKED = 2, 2
ALLOWED = 1  # the action, and the disposition
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
            "profiles": [] if isinstance(happening, LoggedIn) else ["security_control"],
        },
    }
    return json.dumps(event | common, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def _told(happening: Happening) -> Event:
    match happening:
        case Denied():
            return refusal(happening)
        case LoggedIn():
            return login(happening)
        case Changed():
            return alteration(happening)


def refusal(denied: Denied) -> Event:
    """Return what an event says of a refusal."""
    activity = ACTIVITIES.get(denied.operation, OTHER)
    user_type, _, name = denied.principal.partition(":")
    return {
        "category_uid": 6,
        "class_uid": 6003,
        "activity_id": activity,
        "type_uid": 6003 * 100 + activity,
        "severity_id": LOW,
        "status_id": FAILURE,
        "status_detail": f"{denied.resource_type.upper()}_AUTHORIZATION_FAILED",
        "action_id": DENIED,
        "disposition_id": BLOCKED,
        "actor": {"user": {"name": name, "type": user_type, "type_id": KNOWN_USER}},
        "api": {"operation": denied.operation, "service": {"name": "kafka"}},
        "resources": [{"type": denied.resource_type, "name": denied.resource}],
        "src_endpoint": {"ip": denied.address},
    }


def alteration(changed: Changed) -> Event:
    """Return what an event says of a change."""
    change = changed.change
    activity = ACTIVITIES.get(change.operation, OTHER)
    user_type, _, name = changed.principal.partition(":")
    resource: Event = {"type": change.resource_type, "name": change.resource}
    if change.key:
        resource["data"] = {"key": change.key, "value": change.value, "previous": change.previous}
    return {
        "category_uid": 6,
        "class_uid": 6003,
        "activity_id": activity,
        "type_uid": 6003 * 100 + activity,
        "severity_id": INFORMATIONAL,
        "status_id": SUCCESS,
        "action_id": ALLOWED,
        "disposition_id": ALLOWED,
        "actor": {"user": {"name": name, "type": user_type, "type_id": KNOWN_USER}, "app_name": changed.client_id},
        "api": {"operation": change.operation, "service": {"name": "kafka"}},
        "resources": [resource],
        "src_endpoint": {"ip": changed.address},
    }


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
        "auth_protocol": "SASL",
        "auth_protocol_id": 99,
        "user": {
            "name": logged_in.user if is_known else "unknown",
            "type_id": KNOWN_USER if is_known else UNKNOWN_USER,
        },
        "service": {"name": f"kafka listener {logged_in.listener}"},
        "src_endpoint": {"ip": logged_in.address},
    }
