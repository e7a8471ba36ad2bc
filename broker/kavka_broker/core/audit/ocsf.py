"""Events as JSON of the Open Cybersecurity Schema Framework (OCSF 1.8.0), which security tools read.

- a refusal: API Activity (6003), blocked;
- a login: Authentication (3002), Logon.

Times are milliseconds since 1970. `metadata.uid` is the name of the entry: its chain and sequence.
"""

import json
from typing import Final

from kavka_broker.core.audit.happenings import Denied, LoggedIn, Tally

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
Event = dict[str, object]


def event_of(tally: Tally, uid: str) -> bytes:
    """Return the event as JSON in UTF-8."""
    happening = tally.happening
    event = refusal(happening) if isinstance(happening, Denied) else login(happening)
    common: Event = {
        "count": tally.times,
        "time": tally.start_ms,
        "start_time": tally.start_ms,
        "end_time": tally.end_ms,
        "metadata": {
            "version": VERSION,
            "uid": uid,
            "product": {"name": "Kavka", "vendor_name": "Kavka"},
            "profiles": ["security_control"] if isinstance(happening, Denied) else [],
        },
    }
    return json.dumps(event | common, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


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
