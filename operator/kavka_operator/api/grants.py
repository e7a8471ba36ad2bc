"""What a `KafkaCluster` allows to Topics, ClientQuotas and KafkaUsers of other namespaces."""

from typing import Annotated, Literal

from pydantic import Field

from kavka_operator.api.model import ListOf, Model, Unique
from kavka_operator.api.resource import Name

GRANTS_MAX = 64
NAMESPACES_MAX = 64
PREFIX_LENGTH_MAX = 128
PARTITIONS_MAX = 1_000_000

GrantedKind = Literal["Topic", "ClientQuota", "KafkaUser"]


class Grant(Model):
    """A permission for the resources of some namespaces. One grant that allows a resource is enough."""

    namespaces: Annotated[ListOf[Name], Field(min_length=1, max_length=NAMESPACES_MAX), Unique()] = Field(
        description="The namespaces, by name.",
    )
    kinds: Annotated[ListOf[GrantedKind], Field(min_length=1, max_length=3), Unique()] = Field(
        default=("Topic",),
        description="The kinds of resources that may refer to this cluster.",
    )
    prefix: str | None = Field(
        default=None,
        min_length=1,
        max_length=PREFIX_LENGTH_MAX,
        pattern=r"^[a-zA-Z0-9._-]+$",
        description="How the names of topics begin, the user or the client id that a quota names, and the name of a"
        " KafkaUser with all that its access rules name. Left out: any.",
    )
    max_partitions: int | None = Field(
        default=None,
        ge=1,
        le=PARTITIONS_MAX,
        description="How many partitions the topics of each namespace may have together; each Topic then has to set"
        " spec.partitions. Left out: any number.",
    )
