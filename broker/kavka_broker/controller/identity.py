"""Who a node is in the quorum, as its formatted directory says, and how patient, as its configuration does."""

from collections.abc import Sequence

from kavka_broker.controller.metadata_log import MetadataLog
from kavka_broker.controller.start_errors import CannotStart
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.definition import ConfigError
from kavka_broker.core.raft.settings import Identity, Settings
from kavka_broker.storage.log_directory import read_meta_properties

Endpoints = Sequence[tuple[str, str, int]]  # listener, host, port


def settings_of(config: BrokerConfig) -> Settings:
    """The quorum's timeouts and sizes, from the configuration."""
    return Settings(
        election_timeout_ms=config["controller.quorum.election.timeout.ms"],
        fetch_timeout_ms=config["controller.quorum.fetch.timeout.ms"],
        election_backoff_max_ms=config["controller.quorum.election.backoff.max.ms"],
        request_timeout_ms=config["controller.quorum.request.timeout.ms"],
        retry_backoff_ms=config["controller.quorum.retry.backoff.ms"],
        fetch_bytes_max=config["controller.quorum.fetch.max.bytes"],
        snapshot_chunk_bytes=config["controller.quorum.fetch.snapshot.max.bytes"],
        bootstrap_servers=tuple(map(_address, config["controller.quorum.bootstrap.servers"])),
        auto_join=config["controller.quorum.auto.join.enable"],
    )


def identity_of(config: BrokerConfig, metadata_log: MetadataLog, endpoints: Endpoints | None) -> Identity:
    """The identity of this node in the quorum. Raises CannotStart where its directory is not formatted."""
    meta = read_meta_properties(metadata_log.disk, config.metadata_log_dir)
    if meta is None:
        raise CannotStart(f"{config.metadata_log_dir} is not formatted; run kavka-broker format on it first")
    if meta.node_id != config.node_id:
        raise CannotStart(
            f"{config.metadata_log_dir} belongs to node {meta.node_id}, node.id is {config.node_id}; "
            f"correct one of them"
        )
    if endpoints is None:
        endpoints = [
            (listener.name, listener.host, listener.port) for listener in config.listeners.advertised_controllers
        ]
    return Identity(
        node_id=config.node_id,
        directory_id=meta.directory_id,
        cluster_id=meta.cluster_id,
        listener=config.listeners.controller_names[0],
        endpoints=tuple(endpoints),
        is_controller="controller" in config.roles,
    )


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.strip().rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit()):
        raise ConfigError("controller.quorum.bootstrap.servers", f'"{text}" is no address; write HOST:PORT')
    return host.strip("[]"), int(port)
