"""Requests and limits of pods: an amount that is none is refused by the name of its field."""

from typing import Any

import pytest

from kavka_operator.api.pools import NodePool
from kavka_operator.api.validation_errors import InvalidError


@pytest.mark.parametrize("amount", ["500m", "2", 2, "0.5", ".5", "4Gi", "1e3", "1E3", "100k", "1.5Ti", "-1", "10n"])
def test_amounts_as_kubernetes_writes_them_are_kept_as_they_are(amount: object) -> None:
    asked = {"requests": {"cpu": amount}, "claims": [{"name": "gpu"}]}
    assert NodePool.decode({"name": "nodes", "resources": asked}).resources == asked


@pytest.mark.parametrize("amount", ["lots", "", "1 Gi", "1gi", "2GB", 0.5, True, None, [], "1" * 33])
def test_what_is_no_amount_is_refused_by_the_name_of_its_field(amount: object) -> None:
    with pytest.raises(InvalidError) as refused:
        NodePool.decode({"name": "nodes", "resources": {"limits": {"memory": amount}}})
    ((path, words),) = refused.value.faults
    assert path == ("resources",)
    assert words.startswith("limits.memory: ")
    assert words.endswith("is no amount; write one such as 500m, 2 or 4Gi")


@pytest.mark.parametrize("resources", ["2", {"requests": "2"}, {"limits": {f"example.com/{n}": 1 for n in range(33)}}])
def test_requests_and_limits_are_maps_of_bounded_size(resources: Any) -> None:
    with pytest.raises(InvalidError):
        NodePool.decode({"name": "nodes", "resources": resources})
