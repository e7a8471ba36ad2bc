"""The resources of a cluster on Kubernetes: what a write that comes too late, or not at all, is taken for."""

import asyncio
from collections.abc import Coroutine
from types import SimpleNamespace as Bag
from typing import Any, cast

import pytest
from aiohttp import ServerDisconnectedError

from kavka_operator.platform.kubernetes.api import Api, ApiError, Bridge
from kavka_operator.platform.kubernetes.objects import Objects
from kavka_operator.platform.kubernetes.resources import FINALIZER, KubernetesResources
from tests.unit.operator.fakes import topic


class Here:
    """A `Bridge` that runs each coroutine on the spot."""

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run(work)


def resources_of(api: object) -> KubernetesResources:
    objects = Objects(lambda _: None)
    return KubernetesResources(("default", "main"), objects, cast("Api", api), cast("Bridge", Here()))


@pytest.mark.parametrize("status", [404, 409])
def test_a_resource_that_is_gone_before_it_is_held_is_not_held(status: int) -> None:
    async def refuse(*_: object) -> None:
        raise ApiError("no", status)

    resources = resources_of(Bag(apply=refuse))
    with pytest.raises(ApiError, match="gone"):
        resources.hold(topic(deletionPolicy="Delete"), is_needed=True)
    resources.hold(topic(metadata={"finalizers": [FINALIZER]}), is_needed=False)
    assert not resources.set_status(topic(), topic(status={"partitions": 1}).status)


def test_a_connection_that_the_api_server_has_closed_is_an_api_server_that_does_not_answer() -> None:
    async def prepared(*_: object, **__: object) -> tuple[()]:
        return ()

    async def cut(*_: object, **__: object) -> None:
        raise ServerDisconnectedError

    api = Api(cast("Any", Bag(param_serialize=prepared, call_api=cut)))
    with pytest.raises(ApiError, match="does not answer"):
        asyncio.run(api.all_of("Topic", None))
