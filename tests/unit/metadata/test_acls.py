"""Access rules in the image, and the decisions that create and delete them."""

from collections.abc import Callable

import pytest

from kavka_broker.controller.image_replacement import become, image_of
from kavka_broker.core.authorization.access_rules import Rule, RuleFilter
from kavka_broker.core.metadata.decide.acls import create, delete
from kavka_broker.core.metadata.image.acls import Acls
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.metadata.access_control_entry_record import AccessControlEntryRecord
from kavka_broker.protocol.messages.metadata.remove_access_control_entry_record import (
    RemoveAccessControlEntryRecord,
)
from tests.support.cluster import uuid

RULE = Rule(2, "orders", 3, "User:a", "*", 3, 3)
OTHER = RULE._replace(resource_name="bills")
EVERY = RuleFilter(1, None, 1, None, None, 1, 1)
EXACT = RuleFilter(2, "orders", 3, "User:a", "*", 3, 3)


def image(*rules: Rule) -> Metadata:
    metadata = Metadata()
    for record in create(metadata.acls, rules, [uuid(number) for number in range(len(rules))]).records:
        metadata.replay(record)
    return metadata


def test_a_rule_that_is_there_or_comes_twice_is_created_once() -> None:
    metadata = image(RULE)
    decision = create(metadata.acls, [RULE, OTHER, OTHER], [uuid(5), uuid(6), uuid(7)])
    assert decision.response == [None, None, None]
    assert decision.records == [AccessControlEntryRecord(uuid(6), *OTHER)]


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (RULE._replace(resource_type=4), "The only valid name for the CLUSTER resource is kafka-cluster"),
        (RULE._replace(resource_name=""), "Invalid empty resource name"),
        (RULE._replace(resource_type=1), "Invalid resourceType ANY"),
        (RULE._replace(pattern_type=2), "Invalid patternType MATCH"),
        (RULE._replace(operation=1), "Invalid operation ANY"),
        (RULE._replace(permission=1), "Invalid permissionType ANY"),
        (RULE._replace(operation=77), "Invalid operation UNKNOWN"),
        (RULE._replace(principal="a"), "no colon is present"),
        (RULE._replace(host="10.0.0.0/33"), "is no network; write it like"),
    ],
)
def test_a_rule_without_sense_is_refused_and_the_others_are_not(rule: Rule, words: str) -> None:
    decision = create(Acls(), [rule, RULE], [uuid(1), uuid(2)])
    refusal, fine = decision.response
    assert refusal is not None
    assert refusal.code is ErrorCode.INVALID_REQUEST
    assert words in (refusal.message or "")
    assert fine is None
    assert decision.records == [AccessControlEntryRecord(uuid(2), *RULE)]


def test_each_filter_hears_what_it_selects_and_a_rule_goes_once() -> None:
    metadata = image(RULE, OTHER)
    decision = delete(metadata.acls, [EXACT, EVERY, RuleFilter(2, "nope", 3, "User:a", "*", 3, 3)])
    assert decision.response == [[RULE], [RULE, OTHER], []]
    assert decision.records == [RemoveAccessControlEntryRecord(uuid(0)), RemoveAccessControlEntryRecord(uuid(1))]
    for record in decision.records:
        metadata.replay(record)
    assert metadata == Metadata()
    assert metadata.acls.id_of(RULE) is None


def test_a_request_deletes_only_so_many() -> None:
    first, second = delete(image(RULE, OTHER).acls, [EXACT, EVERY], deleted_max=1).response
    assert first == [RULE]
    assert isinstance(second, BrokerError)
    assert "Cannot remove more than 1 acls" in (second.message or "")


def test_a_snapshot_tells_which_rules_are_gone() -> None:
    metadata, newer = image(RULE, OTHER), image(RULE)
    records = become(metadata, newer.copy())
    assert [record for record in records if isinstance(record, RemoveAccessControlEntryRecord)] == [
        RemoveAccessControlEntryRecord(uuid(1))
    ]
    assert metadata == newer


def forgets_ids(acls: Acls) -> None:
    acls._ids.clear()


def keeps_one(acls: Acls) -> None:
    acls._by_id.pop(uuid(1), None)


@pytest.mark.parametrize("defect", [None, forgets_ids, keeps_one])
def test_an_image_from_a_snapshot_decides_as_the_one_it_was_made_of(defect: Callable[[Acls], None] | None) -> None:
    """Two planted defects of a copy, a lost rule and an index that is not kept, are found by what it decides."""
    metadata = image(RULE, OTHER)
    again = image_of(metadata.records(), metadata.offset)
    if defect is not None:
        defect(again.acls)
    is_same = metadata == again and create(again.acls, [RULE], [uuid(9)]).records == []
    assert is_same is (defect is None)
