"""The mark `served` of a config says what the code does: it is there exactly where something reads the config."""

from collections.abc import Mapping

import pytest

from kavka_broker.core.authorization.settings import CLASS_KEY
from kavka_broker.core.config.broker import KEYS
from kavka_broker.core.config.definition import Definition
from kavka_broker.core.config.topic_table import TOPIC_KEYS
from kavka_broker.core.config.unserved_configs import PROMISES
from tests.tidy.config_uses import read_names, read_of_topics


@pytest.mark.parametrize(
    ("definitions", "read"), [(KEYS, read_names()), (TOPIC_KEYS, read_of_topics())], ids=["broker", "topic"]
)
def test_a_config_is_marked_served_exactly_where_it_is_read(
    definitions: Mapping[str, Definition], read: frozenset[str]
) -> None:
    served = {name for name, definition in definitions.items() if definition.served}
    assert sorted(served - read) == [], "marked served, and nothing reads it"
    assert sorted(read - served) == [], "read, and not marked served"


def test_a_default_of_topics_is_served_as_the_topics_config_is() -> None:
    both = [(KEYS[one.synonym], one) for one in TOPIC_KEYS.values() if one.synonym and one.synonym in KEYS]
    assert [default.name for default, one in both if one.served and not default.served] == []


def test_no_promise_that_is_refused_is_marked_served() -> None:
    """Of authorizers the standard one is served, and every other refused."""
    assert [name for name in PROMISES if name in KEYS and KEYS[name].served] == [CLASS_KEY]
