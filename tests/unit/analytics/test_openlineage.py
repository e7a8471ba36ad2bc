"""The events of lineage are those of OpenLineage: its own client reads each, and makes the same of it again."""

import json
from pathlib import Path
from typing import Any

from openlineage.client.facet_v2 import (
    input_statistics_input_dataset,
    job_type_job,
    output_statistics_output_dataset,
    ownership_dataset,
)
from openlineage.client.generated import base
from openlineage.client.naming.dataset import Kafka
from openlineage.client.serde import Serde

from kavka_audit.lake.directory import Lake
from kavka_audit.lake.snapshot import Snapshot
from kavka_audit.questions.query_runner import Settings
from kavka_audit.report.openlineage import PRODUCER
from kavka_audit.run import refresh
from tests.unit.analytics.test_questions import trail_of, use
from tests.unit.analytics.trail import CLUSTER, DAY_MS, NOW_MS, At

ADDRESS = "broker-1:9092"
FACETS: dict[str, type[Any]] = {
    "jobType": job_type_job.JobTypeJobFacet,
    "inputStatistics": input_statistics_input_dataset.InputStatisticsInputDatasetFacet,
    "outputStatistics": output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet,
    "ownership": ownership_dataset.OwnershipDatasetFacet,
}


def facets(found: dict[str, Any]) -> dict[str, Any]:
    """The facets as the client has them; what it does not know in one is refused."""
    made = {}
    for name, fields in found.items():
        known = {field: value for field, value in fields.items() if field != "_schemaURL"}
        producer = known.pop("_producer")
        if "owners" in known:
            known["owners"] = [ownership_dataset.Owner(**owner) for owner in known["owners"]]
        made[name] = FACETS[name](**known, producer=producer)
    return made


def dataset(kind: type[Any], found: dict[str, Any]) -> Any:
    return kind(**{name: facets(value) if name.lower().endswith("facets") else value for name, value in found.items()})


def event(found: dict[str, Any]) -> Any:
    """The event as the client has it; its validators look at it."""
    head = {"eventTime": found["eventTime"], "producer": found["producer"]}
    if "dataset" in found:
        return base.DatasetEvent(**head, dataset=dataset(base.StaticDataset, found["dataset"]))
    job = found["job"]
    return base.RunEvent(
        **head,
        eventType=base.EventType(found["eventType"]),
        run=base.Run(found["run"]["runId"]),
        job=base.Job(job["namespace"], job["name"], facets(job["facets"])),
        inputs=[dataset(base.InputDataset, one) for one in found["inputs"]],
        outputs=[dataset(base.OutputDataset, one) for one in found["outputs"]],
    )


def without_empty(found: Any) -> Any:
    """What is empty may be left out."""
    if isinstance(found, dict):
        return {name: without_empty(value) for name, value in found.items() if value not in ({}, [], None)}
    return [without_empty(value) for value in found] if isinstance(found, list) else found


def test_openlineages_client_reads_every_event(tmp_path: Path) -> None:
    trail = trail_of(
        use("shop", "WRITE", "orders", 300, end_ms=NOW_MS - DAY_MS),
        use("shop", "WRITE", "orders", 200),
        use("billing", "READ", "orders", 400),
        use("billing", "WRITE", "bills", 50),
        use("o'\"\n", "READ", "bills", 1),
    )
    labels = [{"kind": "topic", "name": "orders", "label": "owner", "value": "team:shop"}]
    snapshot = Snapshot(CLUSTER, {"labels": labels}, address=ADDRESS)
    refresh(Lake(tmp_path), trail, snapshot, Settings(NOW_MS), lambda _: None)
    events = [json.loads(line) for line in (tmp_path / "lineage.jsonl").read_text().splitlines()]
    for found in events:
        assert without_empty(Serde.to_dict(event(found))) == without_empty(found)
        assert found["producer"] == PRODUCER
    runs = [found for found in events if "run" in found]
    assert [found["eventType"] for found in runs] == ["START", "COMPLETE"] * 3
    assert len({found["run"]["runId"] for found in runs}) == 3
    (billing,) = (found for found in runs if found["job"]["name"] == "User:billing" and found["eventType"] == "START")
    namespace = Kafka("broker-1", "9092", "orders").get_namespace()
    assert [(one["namespace"], one["name"]) for one in billing["inputs"]] == [(namespace, "orders")]
    assert billing["inputs"][0]["inputFacets"]["inputStatistics"]["size"] == 400
    assert billing["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 1
    (shop,) = (found for found in runs if found["job"]["name"] == "User:shop" and found["eventType"] == "START")
    assert shop["outputs"][0]["outputFacets"]["outputStatistics"]["size"] == 500
    assert shop["eventTime"] < billing["eventTime"]
    (of_dataset,) = (found["dataset"] for found in events if "dataset" in found)
    assert of_dataset["facets"]["ownership"]["owners"] == [{"name": "team:shop"}]


def test_the_same_topics_are_the_same_run(tmp_path: Path) -> None:
    """A catalogue that takes in each file counts no bytes twice."""

    def runs(*uses: At) -> dict[str, str]:
        refresh(
            Lake(tmp_path / f"{len(uses)}"), trail_of(*uses), Snapshot(CLUSTER, {}), Settings(NOW_MS), lambda _: None
        )
        lines = (tmp_path / f"{len(uses)}" / "lineage.jsonl").read_text().splitlines()
        return {found["job"]["name"]: found["run"]["runId"] for found in map(json.loads, lines) if "run" in found}

    first = runs(use("shop", "WRITE", "orders", 300), use("billing", "READ", "orders", 300))
    more = runs(
        use("shop", "WRITE", "orders", 300), use("billing", "READ", "orders", 300), use("shop", "WRITE", "orders")
    )
    other = runs(*[use("shop", "WRITE", name) for name in ("orders", "bills")], *[use("billing", "READ", "orders")] * 2)
    assert more == first
    assert other["User:billing"] == first["User:billing"]
    assert other["User:shop"] != first["User:shop"]
