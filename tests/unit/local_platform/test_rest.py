"""How long `kavka up` rests between two looks."""

import pytest

from kavka_operator.platform.local.up import DRIFT_SECONDS, DRIFT_SECONDS_MAX, rest_seconds
from tests.unit.operator.fakes import quota

WHOLE, EACH = quota("whole", scope="Cluster"), quota("each")


@pytest.mark.parametrize(
    ("took", "of_each", "of_whole"),
    [(0.01, DRIFT_SECONDS, DRIFT_SECONDS), (2.0, 40.0, 8.0), (100.0, DRIFT_SECONDS_MAX, DRIFT_SECONDS_MAX)],
)
def test_a_budget_of_the_cluster_is_looked_after_more_often(took: float, of_each: float, of_whole: float) -> None:
    assert rest_seconds(took, []) == rest_seconds(took, [EACH]) == of_each
    assert rest_seconds(took, [EACH, WHOLE]) == of_whole
