"""What a look asks, and what becomes of it where a cluster refuses, or nobody answers."""

from collections.abc import Callable
from typing import Any

import pytest

from kavka_operator.domain.observed import SeenBroker, SeenPartition
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.broker_metrics import Page
from kavka_operator.kafka.offsets_and_lag import LogDirs, Members
from kavka_operator.live_views.sources import PARTITIONS_MAX, ClusterSource

MEMBERS = Members("c", {1: SeenBroker(1, "a:1"), 2: SeenBroker(2, "b:2")}, (SeenPartition("t", 0, 1, (1,), (1,)),))


class FakeOnlooker:
    """A cluster that answers; `refused` are the questions that it does not, and whether time may help."""

    opened = 0

    def __init__(self, _: str) -> None:
        type(self).opened += 1
        self.refused: dict[str, bool] = {}
        self.is_closed = False

    def __getattr__(self, name: str) -> Callable[..., Any]:
        answers = {
            "members": MEMBERS,
            "controller": 2,
            "quotas": {},
            "ends": {("t", 0): 7},
            "groups": {},
            "transactions": [],
            "log_dirs": LogDirs({("t", 0): 9}, 0.5),
        }

        def answer(*_: object, **__: object) -> Any:
            if name in self.refused:
                raise AdminError(f"could not ask for {name}", retriable=self.refused[name])
            return answers[name]

        return answer

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def admin() -> FakeOnlooker:
    FakeOnlooker.opened = 0
    return FakeOnlooker("")


def source(
    admin: FakeOnlooker, pages: dict[str, Page | None] | None = None, partitions_max: int = PARTITIONS_MAX
) -> ClusterSource:
    found = pages or {}

    def connect(_: str) -> Any:
        admin.opened += 1
        return admin

    return ClusterSource("here", "a:1", tuple(found), connect, found.__getitem__, partitions_max)


def test_a_look_has_all_that_is_told(admin: FakeOnlooker) -> None:
    pages = {"http://a": Page(1), "http://b": Page(None), "http://c": None}
    look = source(admin, pages).take()
    assert (look.members, look.controller, look.ends, look.quotas, look.groups) == (MEMBERS, 2, {("t", 0): 7}, {}, {})
    assert look.log_dirs.keys() == {1, 2}
    assert (sorted(look.pages), look.silent, look.untold) == (["1", "http://b"], 1, ())


@pytest.mark.parametrize("name", ["controller", "quotas", "ends", "groups", "transactions"])
def test_what_is_refused_is_not_told_and_the_rest_is(admin: FakeOnlooker, name: str) -> None:
    admin.refused = {name: False, "log_dirs": False}
    look = source(admin).take()
    assert getattr(look, name) is None
    assert look.log_dirs == {}
    assert f"could not ask for {name}" in look.untold


@pytest.mark.parametrize(("is_retriable", "opened"), [(False, 1), (True, 2)])
def test_connections_are_made_anew_only_where_that_may_help(
    admin: FakeOnlooker, is_retriable: bool, opened: int
) -> None:
    admin.refused, admin.opened = {"groups": is_retriable}, 0
    looker = source(admin)
    looker.take()
    looker.take()
    assert admin.opened == opened


def test_where_no_broker_answers_the_look_fails_and_the_next_connects_anew(admin: FakeOnlooker) -> None:
    admin.refused, admin.opened = {"members": True}, 0
    looker = source(admin)
    with pytest.raises(AdminError):
        looker.take()
    assert admin.is_closed
    admin.refused = {}
    assert looker.take().controller == 2
    assert admin.opened == 2


def test_of_too_many_partitions_the_ends_are_not_asked_for(admin: FakeOnlooker) -> None:
    look = source(admin, partitions_max=0).take()
    assert look.ends is None
    assert "more than 0 partitions" in look.untold[0]
