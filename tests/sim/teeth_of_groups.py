"""Defects of groups: their offsets, and their members."""

from collections.abc import Iterable

from kavka_broker.coordinator.groups.deleted_topics import DeletedTopics
from kavka_broker.core.group import membership
from kavka_broker.core.group.effects import Effects
from kavka_broker.core.group.rebalance import keep_alive
from kavka_broker.core.group.state import Member
from tests.sim.teething import Patch, tooth


@tooth("a group's offsets outlive a deleted topic, and count for another of its name", "", seeds="940008")
def offsets_outlive_their_topic(patch: Patch) -> None:
    patch.setattr(DeletedTopics, "is_gone", lambda self, name, since: False)


@tooth("static members have no session when a coordinator loads its groups", "kill", seeds="4 17",
       workloads="groups")  # fmt: skip
def static_members_never_expire(patch: Patch) -> None:
    def start_sessions(members: Iterable[Member], effects: Effects) -> None:
        for member in members:
            if member.instance_id is None:
                keep_alive(member, effects)

    patch.setattr(membership, "start_sessions", start_sessions)
