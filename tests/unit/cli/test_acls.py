"""Which rules `kavka acls` prints: those of a principal, and those that hold for a resource."""

from pathlib import Path

import pytest

from kavka_cli.commands.acls import chosen_of, documents, rows
from kavka_operator.domain.access_rules import Binding
from tests.unit.operator.person import Person

READ_ORDERS = Binding("Allow", "Read", "Topic", "Literal", "*", "orders")
WRITE_ORD = Binding("Deny", "Write", "Topic", "Prefixed", "10.0.0.1", "ord")
ALL_TOPICS = Binding("Allow", "Describe", "Topic", "Literal", "*", "*")
GROUP = Binding("Allow", "Read", "Group", "Literal", "*", "orders")
RULES = {"User:b": frozenset({WRITE_ORD, ALL_TOPICS}), "User:a": frozenset({READ_ORDERS, GROUP})}


@pytest.mark.parametrize(
    ("principal", "resource", "found"),
    [
        (None, None, [("User:a", GROUP), ("User:a", READ_ORDERS), ("User:b", ALL_TOPICS), ("User:b", WRITE_ORD)]),
        ("a", None, [("User:a", GROUP), ("User:a", READ_ORDERS)]),
        ("User:b", ("Topic", "ordinary"), [("User:b", ALL_TOPICS), ("User:b", WRITE_ORD)]),
        (None, ("Topic", "other"), [("User:b", ALL_TOPICS)]),
        ("Group:a", None, []),
        (None, ("Group", "orders"), [("User:a", GROUP)]),
    ],
)
def test_rules_are_chosen_by_principal_and_by_what_they_hold_for(
    principal: str | None, resource: tuple[str, str] | None, found: list[tuple[str, Binding]]
) -> None:
    assert list(chosen_of(RULES, principal, resource)) == found


def test_rules_are_printed_in_words() -> None:
    head, row = rows([("User:b", WRITE_ORD)])
    assert head == ["PRINCIPAL", "PERMISSION", "OPERATION", "RESOURCE", "NAME", "PATTERN", "HOST"]
    assert row == ["User:b", "Deny", "Write", "Topic", "ord", "Prefixed", "10.0.0.1"]
    (document,) = documents([("User:b", WRITE_ORD)])
    assert document["resourceName"] == "ord"


@pytest.mark.parametrize("text", ["orders", "topics/orders", "topic/"])
def test_a_resource_is_written_with_its_kind(tmp_path: Path, text: str) -> None:
    code, said = Person(tmp_path).types("acls", "--resource", text)
    assert code == 1
    assert said.startswith(f'error: "{text}" is not a resource; write KIND/NAME with a kind of topic, ')
