"""Records of groups of the newer protocols, whose groups begin with their first record and end with a tombstone."""

from dataclasses import dataclass, field

import pytest

from kavka_broker.core.group.replay import GroupReplay
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.group.share_group_member_metadata_key import ShareGroupMemberMetadataKey
from kavka_broker.protocol.messages.group.share_group_metadata_key import ShareGroupMetadataKey
from kavka_broker.protocol.messages.group.share_group_metadata_value import ShareGroupMetadataValue

VALUE = ShareGroupMetadataValue(1, 0)


@dataclass
class Heard:
    """A group that knows its records."""

    group_id: str
    records: list[tuple[str, str]] = field(default_factory=list)


def named(key: Message) -> str:
    return key.member_id if isinstance(key, ShareGroupMemberMetadataKey) else ""


replay = GroupReplay(
    (ShareGroupMetadataKey, ShareGroupMemberMetadataKey),
    Heard,
    put=lambda group, key, _: group.records.append(("put", named(key))),
    bury=lambda group, key: group.records.append(("bury", named(key))),
    ends=lambda group, key: isinstance(key, ShareGroupMetadataKey),
)


def test_a_group_begins_with_its_first_record_and_ends_with_the_tombstone_that_says_so() -> None:
    groups = dict[str, Heard]()
    replay(groups, ShareGroupMemberMetadataKey("g", "a"), VALUE)
    replay(groups, ShareGroupMetadataKey("g"), VALUE)
    replay(groups, ShareGroupMemberMetadataKey("g", "a"), None)
    assert groups == {"g": Heard("g", [("put", "a"), ("put", ""), ("bury", "a")])}
    replay(groups, ShareGroupMetadataKey("g"), None)
    assert groups == {}


def test_a_tombstone_makes_no_group() -> None:
    groups = dict[str, Heard]()
    replay(groups, ShareGroupMemberMetadataKey("g", "a"), None)
    assert groups == {}


def test_a_record_of_another_kind_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(AssertionError, match="no key of these groups"):
        replay({}, VALUE, VALUE)
