"""Access rules of Kafka (ACLs), as the resource declares them, as Kafka describes them, and as a status names them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from kavka_operator.api.user import BINDING_LENGTH_MAX, CLUSTER_NAME, KafkaUser

_FIELDS: Final = 6


@dataclass(frozen=True, slots=True, order=True)
class Binding:
    """One access rule of a principal, in Kafka's words: `Allow Read Topic Literal * orders`.

    The name of the resource stands last, as it may have any characters.
    """

    permission: str
    operation: str
    resource_type: str
    pattern_type: str
    host: str
    name: str

    def __str__(self) -> str:
        return f"{self.permission} {self.operation} {self.resource_type} {self.pattern_type} {self.host} {self.name}"

    @staticmethod
    def parsed(text: str) -> "Binding | None":
        """The rule that a status names; None where it is none."""
        parts = text.split(" ", _FIELDS - 1)
        return Binding(*parts) if len(parts) == _FIELDS else None


Rules = Mapping[str, frozenset[Binding]]
"""Access rules by the principal that they are of."""


def declared(user: KafkaUser) -> frozenset[Binding]:
    """The rules that a resource wants."""
    return frozenset(_declared(user))


def _declared(user: KafkaUser) -> Iterator[Binding]:
    for acl in user.spec.acls:
        resource = acl.resource
        for operation in acl.operations:
            name = resource.name or CLUSTER_NAME
            yield Binding(acl.permission, operation, resource.type, resource.pattern_type, acl.host, name)


def owned(user: KafkaUser) -> frozenset[Binding]:
    """The rules that a resource has made or taken over, by its status."""
    return frozenset(found for text in user.status.acls if (found := Binding.parsed(text)) is not None)


def texts(rules: frozenset[Binding]) -> tuple[str, ...]:
    """The rules for a status, in one order; a name that is too long for it is left out."""
    return tuple(text for rule in sorted(rules) if len(text := str(rule)) <= BINDING_LENGTH_MAX)
