"""Consensus of the controller quorum (KRaft): the rules, without the disk and the network."""
