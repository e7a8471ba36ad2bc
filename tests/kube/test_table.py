"""What the API server admits and what the models take is the same; each row and each file is asked of both."""

import json
from datetime import datetime
from pathlib import Path

import pytest
import yaml

from kavka_operator.api.kinds import KINDS, AnyResource
from kavka_operator.api.stored_resources import resource_from
from kavka_operator.api.validation_errors import InvalidError
from tests.kube.cluster import Kubernetes
from tests.kube.objects import Change, Row
from tests.kube.rows import CHANGES, ROWS
from tests.support.control_plane import Json

HERE = Path(__file__).parents[1]
BAD = sorted((HERE / "unit/operator/bad").glob("*.yaml"))
EXAMPLES = sorted((HERE.parent / "examples").glob("*.yaml"))

OTHERS = "it takes other resources to tell"
SETTINGS = "the names of settings are no part of the schema"
CANNOT_TELL = {
    "no_cluster_at_all": OTHERS,
    "no_such_cluster": OTHERS,
    "quota_twice": OTHERS,
    "topic_twice": OTHERS,
    "user_twice": OTHERS,
    "resource_twice": "the second is taken for a change of the first",
    "bad_topic_setting": SETTINGS,
    "unknown_topic_setting": SETTINGS,
}
"""The bad files that an API server admits, and why."""


@pytest.fixture
def kubernetes(shared: Kubernetes) -> Kubernetes:
    """The namespace of all of these tests."""
    return shared


def as_json(document: Json) -> Json:
    """A document as kubectl sends it: YAML's moments as text."""
    found: Json = json.loads(json.dumps(document, default=datetime.isoformat))
    return found


def rows(table: tuple[Row, ...] | tuple[Change, ...]) -> list[object]:
    """The rows as parameters."""
    return [pytest.param(row, id=row.name.replace(" ", "-")) for row in table]


def decoded(resource: Json) -> AnyResource | None:
    """The model of what a person wrote, or None where it is refused."""
    try:
        return KINDS[resource["kind"]].decode({key: part for key, part in resource.items() if key != "status"})
    except InvalidError:
        return None


@pytest.mark.parametrize("row", rows(ROWS))
def test_an_object_is_admitted_exactly_where_the_models_take_it(kubernetes: Kubernetes, row: Row) -> None:
    answer = kubernetes.create(row.resource, dry=True)
    assert answer.is_well == row.is_good, answer.message
    assert (decoded(row.resource) is not None) == row.is_good


@pytest.mark.parametrize("change", rows(CHANGES))
def test_a_change_is_admitted_exactly_where_the_models_take_it(kubernetes: Kubernetes, change: Change) -> None:
    kind, name = change.before["kind"], change.before["metadata"]["name"]
    assert kubernetes.create(change.before).is_well
    if change.status:
        assert kubernetes.see(kind, name, dict(change.status)).is_well
    stored = kubernetes.get(kind, name)
    answer = kubernetes.api.call("PUT", kubernetes.path(kind, name), merged(stored, change.after))
    assert answer.is_well == change.is_good, answer.message
    old, new = resource_from(stored), decoded(change.after)
    assert new is not None
    assert may_become(old, new) == change.is_good


def merged(stored: Json, wanted: Json) -> Json:
    """What is stored, with the spec that is wanted."""
    return {**stored, "spec": wanted["spec"]}


def may_become(old: AnyResource, new: AnyResource) -> bool:
    """Whether the models let one resource become the other."""
    broken = [*new.spec.forbidden_changes(old.spec), *new.forbidden_changes(old)]  # type: ignore[arg-type]
    return not broken


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_bad_file_is_refused_unless_the_api_server_cannot_tell(kubernetes: Kubernetes, path: Path) -> None:
    ran = kubernetes.kubectl("apply", "--dry-run=server", "-f", str(path))
    assert (ran.returncode == 0) == (path.stem in CANNOT_TELL), ran.stdout + ran.stderr


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_admitted_and_read_back_as_it_was_written(kubernetes: Kubernetes, path: Path) -> None:
    for document in map(as_json, yaml.safe_load_all(path.read_text())):
        answer = kubernetes.create(document)
        assert answer.is_well, answer.message
        written, stored = decoded(document), resource_from(answer.body)
        assert written is not None
        assert stored.spec == written.spec
