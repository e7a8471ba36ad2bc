"""What governs the elections of a topic: how many replicas must be in sync, and whether data may be lost for service.

A topic may say so itself; else what was altered for all brokers holds, else the file of the active controller, which
the shell hands in as a `Policy`. With eligible leader replicas (KIP-966) the bound is always in the metadata, so there
every controller decides alike whatever its file says.
"""

from dataclasses import dataclass
from typing import Final

from kavka_broker.core.config.broker import KEYS, BrokerConfig
from kavka_broker.core.config.topic_table import TOPIC_KEYS
from kavka_broker.core.metadata.image.features import ELR_FEATURE
from kavka_broker.core.metadata.image.metadata import Metadata

MIN_INSYNC: Final = "min.insync.replicas"
UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"
assert KEYS.keys() & TOPIC_KEYS.keys() >= {MIN_INSYNC, UNCLEAN_ELECTION}, "a broker's word and a topic's have one name"


@dataclass(frozen=True, slots=True)
class Policy:
    """Settings for topics of which the metadata says nothing."""

    min_insync: int = 1
    unclean_election: bool = False


BY_DEFAULT: Final = Policy()


def policy_of(config: BrokerConfig) -> Policy:
    """The policy in a controller's file."""
    return Policy(min_insync=config[MIN_INSYNC], unclean_election=config[UNCLEAN_ELECTION])


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules for the partitions of one topic. `tracks_eligible`: the cluster keeps eligible leader replicas."""

    min_insync: int = 1
    unclean_election: bool = False
    tracks_eligible: bool = False

    def __post_init__(self) -> None:
        assert self.min_insync >= 1, self


def rules_of(metadata: Metadata, topic: str, policy: Policy) -> Rules:
    """Rules of the topic: its own configs, otherwise those for all brokers, otherwise the policy."""
    own, common = metadata.configs.topic(topic), metadata.configs.all_brokers()
    min_insync = own.get(MIN_INSYNC, common.get(MIN_INSYNC))
    unclean = own.get(UNCLEAN_ELECTION, common.get(UNCLEAN_ELECTION))
    return Rules(
        policy.min_insync if min_insync is None else int(min_insync),
        policy.unclean_election if unclean is None else unclean.strip().lower() == "true",
        metadata.features.level(ELR_FEATURE) > 0,
    )
