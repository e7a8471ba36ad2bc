"""What the active controller's file says for topics of which the metadata says nothing."""

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.metadata.decide.policy import MIN_INSYNC, UNCLEAN_ELECTION, Policy


def policy_of(config: BrokerConfig) -> Policy:
    return Policy(min_insync=config[MIN_INSYNC], unclean_election=config[UNCLEAN_ELECTION])
