"""Each kind of event is what OCSF 1.8.0 says of its class, by a schema that others have made from the standard."""

import json
from functools import cache
from typing import Any

import jsonschema
import pytest
from ocsf_json_schema import get_ocsf_schema
from ocsf_json_schema.embedded import OcsfJsonSchemaEmbedded

from kavka_broker.core.audit.changes import Change, transaction_aborted
from kavka_broker.core.audit.events import Changed, Denied, Happening, Lifecycle, LoggedIn, Tally
from kavka_broker.core.audit.ocsf import VERSION, event_of
from kavka_broker.core.audit.usage import Throttling, Use

CHANGE = Change("ALTER_CONFIGS", "topic", "orders", "retention.ms", "9", None)
HAPPENINGS: list[Happening] = [
    Denied("User:bob", "10.0.0.1", "WRITE", "topic", "orders"),
    Denied("User:bob", "::1", "CLUSTER_ACTION", "cluster", "kafka-cluster"),
    LoggedIn("alice", "10.0.0.1", "EXTERNAL"),
    LoggedIn(None, "10.0.0.1", "EXTERNAL"),
    LoggedIn("CN=app", "10.0.0.1", "SECURED", "TLS"),
    LoggedIn(None, "10.0.0.1", "SECURED", "TLS"),
    LoggedIn("(others)", "", "EXTERNAL"),
    LoggedIn(None, "", "EXTERNAL"),
    Denied("User:(others)", "", "WRITE", "topic", "(others)"),
    Denied("User:ANONYMOUS", "10.0.0.1", "CONNECT", "listener", "EXTERNAL"),
    Changed("User:(others)", "", "", Change("CREATE", "topic", "(others)")),
    Changed("User:alice", "::1", "cli", Change("ALTER", "topic", "orders", "leader of partition 0", "preferred")),
    Lifecycle("START", "1", "0.1.0"),
    Lifecycle("STOP", "1", "0.1.0"),
    Changed("User:alice", "10.0.0.1", "admin", CHANGE),
    Changed("Broker:1", "", "", transaction_aborted("orders-0", "timeout")),
    Changed("User:alice", "10.0.0.1", "", Change("CREATE", "topic", "orders")),
    Use("User:alice", "10.0.0.1", "app", "WRITE", "orders", 100, 3),
    Use("User:alice", "10.0.0.1", "app", "READ", "orders", 100, None),
    Throttling("User:alice", "10.0.0.1", "app", "produce", '{"user": "alice"}', 1024.0, 500, 300),
    Use("User:(others)", "", "", "READ", "(others)", 100, None),
    Throttling("User:(others)", "", "", "produce", "", 1024.0, 500, 300),
    Throttling("User:alice", "10.0.0.1", "app", "controller_mutation", '{"user": "alice"}', 1.5, 500, 300),
    Throttling("User:alice", "10.0.0.1", "app", "topic_produce", '{"topic": "orders"}', 1024.0, 500, 300),
    Throttling("User:ANONYMOUS", "10.0.0.1", "", "connection_creation", '{"ip": null}', 5.0, 500, 300),
]


@cache
def schema_of(class_uid: int, profiles: tuple[str, ...]) -> Any:
    schemas = OcsfJsonSchemaEmbedded(get_ocsf_schema(VERSION))
    return schemas.get_class_schema(
        {3002: "authentication", 6002: "application_lifecycle", 6003: "api_activity"}[class_uid], list(profiles)
    )


def validate(event: Any) -> None:
    jsonschema.validate(event, schema_of(event["class_uid"], tuple(event["metadata"]["profiles"])))


@pytest.mark.parametrize("happening", HAPPENINGS, ids=repr)
def test_an_event_validates(happening: Happening) -> None:
    validate(json.loads(event_of(Tally(happening, 2, 1_000, 2_000), "1-7-0")))


def test_a_field_that_ocsf_does_not_know_is_found() -> None:
    event = json.loads(event_of(Tally(HAPPENINGS[0], 2, 1_000, 2_000), "1-7-0"))
    with pytest.raises(jsonschema.ValidationError):
        validate(event | {"kafka": {}})
