"""What changes consumer groups: offsets that are committed for them, and their end."""

from collections.abc import Mapping

import kafka.errors
from kafka import TopicPartition
from kafka.structs import OffsetAndMetadata

from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.errors import in_words, raise_for
from kavka_operator.kafka.offsets_and_lag import Onlooker

HAS_MEMBERS = {
    kafka.errors.UnknownMemberIdError.errno,
    kafka.errors.IllegalGenerationError.errno,
    kafka.errors.RebalanceInProgressError.errno,
    kafka.errors.NonEmptyGroupError.errno,
}


class GroupAdmin(Onlooker):
    """Commits for a group without members, and deletes one. Every method may raise AdminError."""

    def commit(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit these offsets for the group, by topic and partition. A group that has none is made by it."""
        with in_words(f"commit offsets of group {group}"):
            answers = self._client.alter_group_offsets(
                group,
                {TopicPartition(*key): OffsetAndMetadata(offset, "", -1) for key, offset in sorted(offsets.items())},
            )
            for place, error in answers.items():
                _check(group, error.errno, f"{place.topic}-{place.partition}")

    def delete(self, group: str) -> None:
        """Delete the group with its offsets."""
        with in_words(f"delete group {group}"):
            found = dict(self._client.delete_groups([group]))
            _check(group, getattr(found[group], "errno", 0), "")


def _check(group: str, code: int, place: str) -> None:
    """Raise where a change was refused."""
    if code in HAS_MEMBERS:
        raise AdminError(f"group {group} has members; stop them first, as they would commit over it")
    raise_for(code, place or None)
