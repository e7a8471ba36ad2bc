"""Limits from the audit trail as resources: those that are still too low, with what else the entity has."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kavka_audit_run.quota_suggestions import recommendations
from kavka_broker.core.quota.entity import DEFAULT, Entity
from kavka_cli.suggested_quotas import How, file_of
from kavka_operator.api.files import load
from kavka_operator.api.quota import AnyEntity

LIMITS: dict[AnyEntity, dict[str, float]] = {
    Entity("a"): {"producer_byte_rate": 100_000.0, "request_percentage": 50.0},
    Entity(DEFAULT, "app"): {"consumer_byte_rate": 100_000.0},
}


def row(entity: dict[str, str | None] | None, quota_type: str = "produce", limit: float = 262_144.0) -> dict[str, Any]:
    text = None if entity is None else json.dumps(entity)
    found = {"quota_entity": text, "quota_type": quota_type, "fitting_limit": limit, "demand": 200_000.0}
    return found | {"rate": 100_000.0, "minutes": 3, "node": 2}


def test_a_limit_that_is_too_low_is_raised_and_the_others_stay(tmp_path: Path) -> None:
    rows = [row({"user": "a"}), row({"user": None, "client-id": "app"}, "fetch")]
    found = recommendations(rows, LIMITS)
    assert [fit.entity for fit in found] == [Entity("a"), Entity(DEFAULT, "app")]
    assert found[0].others == {"request_percentage": 50.0}
    file = tmp_path / "quotas.yaml"
    file.write_text("\n".join(file_of(found, "main", "default", {}, How())))
    first, second = (document["spec"] for document in yaml.safe_load_all(file.read_text()))
    assert first["limits"] == {"producerByteRate": "256Ki", "requestPercentage": 50.0}
    assert second["entity"] == {"user": {"default": True}, "clientId": {"name": "app"}}
    assert second["mode"] == "Enforce"
    cluster = "apiVersion: kavka.dev/v1alpha1\nkind: KafkaCluster\nmetadata: {name: main}\n"
    (tmp_path / "main.yaml").write_text(f"{cluster}spec: {{nodePools: [{{name: nodes, replicas: 1}}]}}\n")
    assert len(load([tmp_path / "main.yaml", file])) == 3


@pytest.mark.parametrize(
    "found",
    [
        row({"user": "a"}, limit=100_000.0),
        row({"user": "b"}),
        row({"user": "a"}, "fetch"),
        row({"client-id-prefix": "etl-"}),
        row({}),
        row(None),
    ],
)
def test_what_has_no_limit_that_is_too_low_is_left_out(found: dict[str, Any]) -> None:
    assert recommendations([found], LIMITS) == []
