"""The resources of a cluster on Kubernetes: what a write that comes too late, or not at all, is taken for."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from types import SimpleNamespace as Bag
from typing import Any, cast

import pytest
from aiohttp import ServerDisconnectedError

from kavka_operator.api import API_VERSION
from kavka_operator.api.kinds import Key, key_of
from kavka_operator.platform.kubernetes.live.api import Api, ApiError, Bridge, Document
from kavka_operator.platform.kubernetes.live.cluster_resources import FINALIZER, TOGETHER_MAX, KubernetesResources
from kavka_operator.platform.kubernetes.live.resource_cache import Objects
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

    resources, wanted = resources_of(Bag(apply=refuse)), topic(deletionPolicy="Delete")
    (fault,) = resources.hold([(wanted, True)]).values()
    assert "gone" in str(fault)
    assert resources.hold([(topic(metadata={"finalizers": [FINALIZER]}), False)]) == {}
    assert not resources.set_status(topic(), topic(status={"partitions": 1}).status)


class Counting:
    """An API server that counts how many requests it is asked at a time, and refuses those for one resource."""

    def __init__(self, refused: str) -> None:
        self.refused, self.asked, self.most = refused, set[str](), 0
        self.written: list[str] = []

    async def apply(self, key: Key, uid: str, parts: Mapping[str, Any], _: str = "") -> Document:
        self.asked.add(key[2])
        self.most = max(self.most, len(self.asked))
        await asyncio.sleep(0)
        self.asked.discard(key[2])
        if key[2] == self.refused:
            raise ApiError("no room", 507)
        self.written.append(key[2])
        metadata = {"resourceVersion": "2", "uid": uid, **parts.get("metadata", {})}
        return {"apiVersion": API_VERSION, "kind": "Topic", **topic(key[2], metadata=metadata).to_dict(), **parts}


MANY = [topic(f"t{number}") for number in range(40)]
OTHERS = sorted(resource.name for resource in MANY if resource.name != "t7")


def test_finalizers_are_written_some_at_a_time_and_one_that_fails_is_told_alone() -> None:
    api, held = Counting("t7"), topic("held", metadata={"finalizers": [FINALIZER]})
    faults = resources_of(api).hold([(resource, True) for resource in (*MANY, held)])
    assert {key[2]: str(fault) for key, fault in faults.items()} == {"t7": "no room"}
    assert (sorted(api.written), api.most) == (OTHERS, TOGETHER_MAX)


def test_statuses_are_written_some_at_a_time_and_one_that_fails_is_told_alone() -> None:
    api, standing = Counting("t7"), topic("standing", status={"partitions": 1})
    resources, status = resources_of(api), standing.status
    faults = resources.set_statuses([(resource, status) for resource in (*MANY, standing)])
    assert {key[2]: str(fault) for key, fault in faults.items()} == {"t7": "no room"}
    assert (sorted(api.written), api.most) == (OTHERS, TOGETHER_MAX)
    api.refused = ""
    resources.set_statuses([(resource, status) for resource in MANY])
    assert sorted(api.written) == sorted([*OTHERS, "t7"]), "those that stand are not written again"


def test_deleted_resources_are_let_go_some_at_a_time_and_one_that_fails_is_told_alone() -> None:
    api = Counting("t7")
    resources, gone = resources_of(api), ("Topic", "default", "gone")
    for resource in MANY:
        metadata = {"uid": f"uid-{resource.name}", "resourceVersion": "1", "finalizers": [FINALIZER]}
        resources.objects.take({"kind": "Topic", **topic(resource.name, metadata=metadata).to_dict()})
    found = resources.remove_all([*map(key_of, MANY), gone])
    assert {key[2]: str(answer) for key, answer in found.items() if answer is not True} == {
        "t7": "no room",
        "gone": "False",
    }
    assert (sorted(api.written), api.most) == (OTHERS, TOGETHER_MAX)
    assert resources.remove(gone) is False
    with pytest.raises(ApiError, match="no room"):
        resources.remove(("Topic", "default", "t7"))


def api_that(call: Callable[..., Awaitable[object]]) -> Api:
    """An `Api` whose requests are made by a function."""

    async def prepared(*_: object, **__: object) -> tuple[()]:
        return ()

    return Api(cast("Any", Bag(param_serialize=prepared, call_api=call)))


def test_a_connection_that_the_api_server_has_closed_is_an_api_server_that_does_not_answer() -> None:
    async def cut(**_: object) -> None:
        raise ServerDisconnectedError

    with pytest.raises(ApiError, match="does not answer"):
        asyncio.run(api_that(cut).all_of("Topic", None))


def test_a_page_of_a_proxy_is_not_taken_for_an_answer() -> None:
    async def read() -> bytes:
        return b"<html>"

    async def answer(**_: object) -> object:
        return Bag(status=200, response=Bag(read=read))

    with pytest.raises(ApiError, match="JSON"):
        asyncio.run(api_that(answer).all_of("Topic", None))


@pytest.mark.parametrize(("expiries", "names"), [(0, ["a", "b"]), (1, ["a", "b"]), (2, None)])
def test_a_list_that_grows_too_old_is_read_from_its_beginning_once(expiries: int, names: list[str] | None) -> None:
    """The API server forgets old versions after minutes: 410 for the second page says that they are over."""
    left = [expiries]
    queries: list[list[tuple[str, str]]] = []

    async def prepare(*_: object, query_params: list[tuple[str, str]], **__: object) -> tuple[()]:
        queries.append(query_params)
        return ()

    async def answer(**_: object) -> object:
        is_second = any(key == "continue" for key, _ in queries[-1])
        if is_second and left[0] > 0:
            left[0] -= 1
            return said(410, {"message": "too old"})
        metadata = {"resourceVersion": "7", **({} if is_second else {"continue": "more"})}
        return said(200, {"metadata": metadata, "items": [{"metadata": {"name": "b" if is_second else "a"}}]})

    api = Api(cast("Any", Bag(param_serialize=prepare, call_api=answer)))
    if names is None:
        with pytest.raises(ApiError, match="too old"):
            asyncio.run(api.all_of("Topic", None))
        return
    found, version = asyncio.run(api.all_of("Topic", None))
    assert ([item["metadata"]["name"] for item in found], version) == (names, "7")


def said(status: int, body: dict[str, Any]) -> object:
    """An answer of the API server."""

    async def read() -> bytes:
        return json.dumps(body).encode()

    return Bag(status=status, response=Bag(read=read))


def test_a_status_that_stands_beside_the_condition_of_another_is_not_written_again() -> None:
    """What we say of a resource never equals what is read then: the other's condition is in there, too."""
    answers = [3, 4]
    stored: dict[str, Any] = topic().to_dict() | {"kind": "Topic"}
    stored["metadata"] |= {"uid": "u", "resourceVersion": "2"}

    async def apply(*_: object) -> dict[str, Any]:
        return stored | {"metadata": stored["metadata"] | {"resourceVersion": str(answers.pop(0))}}

    resources = resources_of(Bag(apply=apply))
    resources.objects.take(stored)
    status = topic(status={"partitions": 1}).status
    assert resources.set_status(topic(), status)
    assert not resources.set_status(topic(), status)
    assert resources.set_status(topic(), topic(status={"partitions": 2}).status), "it says something new"
    resources.objects.take(stored | {"metadata": stored["metadata"] | {"resourceVersion": "5"}})
    answers.append(6)
    assert resources.set_status(topic(), topic(status={"partitions": 2}).status), "somebody else wrote meanwhile"


@pytest.mark.parametrize("is_late", [False, True])
def test_a_field_that_another_wrote_into_a_status_is_taken_out_and_what_we_do_not_know_stays(is_late: bool) -> None:
    """Server-side apply keeps a field of another manager. Where the object has changed since, the next look sees it."""
    stored: dict[str, Any] = topic().to_dict() | {"kind": "Topic"}
    stored["metadata"] |= {"uid": "u", "resourceVersion": "2"}
    taken: list[list[str]] = []

    async def apply(_: object, __: object, parts: dict[str, Any], ___: str) -> dict[str, Any]:
        status = {"replicationFactor": 9, "ofALaterVersion": 1, **parts["status"]}
        return stored | {"metadata": stored["metadata"] | {"resourceVersion": "3"}, "status": status}

    async def without(_: object, document: dict[str, Any], fields: list[str]) -> dict[str, Any]:
        taken.append(fields)
        if is_late:
            raise ApiError("changed", 409)
        return stored | {"metadata": document["metadata"] | {"resourceVersion": "4"}, "status": {"partitions": 1}}

    resources = resources_of(Bag(apply=apply, without=without))
    resources.objects.take(stored)
    assert resources.set_status(topic(), topic(status={"partitions": 1}).status)
    assert taken == [["replicationFactor"]]
    assert resources.objects.version(("Topic", "default", "orders")) == (3 if is_late else 4)
