"""Each kind that is about something in Kafka has its module, which has all that the loop asks of it."""

from types import ModuleType
from typing import get_args

import pytest

from kavka_operator.api.kinds import Managed
from kavka_operator.loop.kinds.kind import Kind
from kavka_operator.loop.kinds.table import KINDS, claims_of
from tests.unit.operator.fakes import quota, topic

ASKED = sorted(name for name in vars(Kind) if not name.startswith("_"))


def test_every_kind_has_a_module() -> None:
    assert set(KINDS) == set(get_args(Managed))


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_a_module_has_what_the_loop_asks(kind: object) -> None:
    assert isinstance(kind, ModuleType)
    assert [name for name in ASKED if not callable(getattr(kind, name, None))] == []
    own = [name for name, value in vars(kind).items() if getattr(value, "__module__", "") == kind.__name__]
    assert [name for name in own if not name.startswith("_") and name not in ASKED] == []


def test_the_oldest_claims_first() -> None:
    resources: list[Managed] = [topic("a"), topic("b"), quota()]
    assert sorted(len(same) for same in claims_of([*resources, topic("a")]).values()) == [1, 1, 2]
