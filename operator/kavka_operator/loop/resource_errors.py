"""Isolates what goes wrong with one resource in a pass: it becomes that resource's condition, and the others go on."""

from collections.abc import Generator, Hashable, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from kavka_operator.api.kinds import Key, Managed, key_of
from kavka_operator.domain.plan import Word, reconciling, stalled
from kavka_operator.kafka.admin import AdminError, ThrottledError
from kavka_operator.loop.unexpected_errors import UnexpectedErrors


@dataclass(slots=True)
class Failures:
    """The failures of one pass, by resource; `unexpected_errors` has those of our own, which outlast it."""

    unexpected_errors: UnexpectedErrors
    now: datetime
    words: dict[Key, tuple[Word, ...]] = field(default_factory=dict)
    _faulty: set[Key] = field(default_factory=set)

    def __contains__(self, key: Key) -> bool:
        return key in self.words

    def hold_back(self, resources: Iterable[Managed]) -> None:
        """Leave out the resources whose last fault is too recent to try them again."""
        for resource in resources:
            if words := self.unexpected_errors.waiting(key_of(resource), self.now, _version_of(resource)):
                self.words[key_of(resource)] = words
                self._faulty.add(key_of(resource))

    @contextmanager
    def over(self, resource: Managed) -> Generator[None]:
        """Note an error in the block as the failure of this resource alone."""
        key = key_of(resource)
        try:
            yield
        except AdminError as error:
            self.words[key] = (reconciling if error.retriable else stalled)(
                "Throttled" if isinstance(error, ThrottledError) else "Failing" if error.retriable else "Rejected",
                str(error),
            )
        except Exception as error:  # noqa: BLE001 - a fault of ours, which is shown and told
            self.words[key] = self.unexpected_errors.note(key, error, self.now, _version_of(resource))
            self._faulty.add(key)

    def forgive(self, keys: Iterable[Key]) -> None:
        """Forget the faults of resources that went well."""
        for key in keys:
            if key not in self._faulty:
                self.unexpected_errors.clear(key)


def _version_of(resource: Managed) -> Hashable:
    """A value that changes with the parts of a resource that a person writes."""
    annotations = tuple(sorted(resource.metadata.annotations.items()))
    return resource.metadata.generation, annotations, resource.metadata.deletion_timestamp
