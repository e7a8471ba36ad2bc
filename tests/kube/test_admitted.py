"""What the API server admits can be decoded: shown with objects drawn at random."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings

from kavka_operator.api.kinds import KINDS
from kavka_operator.api.stored_resources import UnreadableError, resource_from
from tests.kube.cluster import Kubernetes
from tests.kube.drawing import resources
from tests.kube.objects import topic
from tests.kube.rows import ROWS
from tests.support.control_plane import ControlPlane, Json

EXAMPLES = 150


@pytest.fixture(scope="module")
def default(plane: ControlPlane) -> Iterator[Kubernetes]:
    """A namespace for dry runs, of which nothing is kept."""
    with closing(plane.api()) as api:
        yield Kubernetes(plane, api, "default")


def fault(resource: Json) -> str:
    """Why the operator cannot read what is stored; empty where it can."""
    try:
        resource_from(resource)
    except UnreadableError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_admitted_can_be_decoded(default: Kubernetes, kind: str) -> None:
    verdicts: Counter[bool] = Counter()
    good = [row.resource for row in ROWS if row.is_good and row.resource["kind"] == kind]

    @settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
    @given(resource=resources(kind, good))
    def each(resource: Json) -> None:
        answer = default.create(resource, dry=True)
        verdicts[answer.is_well] += 1
        if answer.is_well:
            assert fault(answer.body) == ""
        else:
            assert answer.status in {400, 422}, answer.message

    each()
    assert min(verdicts[True], verdicts[False]) > EXAMPLES / 30, "what is drawn shows nothing"  # usual are 25 and more


def test_a_fraction_takes_quotes_where_a_file_takes_it_without(default: Kubernetes) -> None:
    """An API server has no type for texts and all numbers; what it says names the field and what it takes."""
    plain = topic(config={"min.cleanable.dirty.ratio": 0.25})
    assert fault(plain) == ""
    answer = default.create(plain, dry=True)
    assert not answer.is_well
    assert 'spec.config.min.cleanable.dirty.ratio: Invalid value: "number"' in answer.message
    assert default.create(topic(config={"min.cleanable.dirty.ratio": "0.25"}), dry=True).is_well
