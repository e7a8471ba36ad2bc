"""The listeners of a node: where it listens, what it advertises, and which protocols their names stand for."""

import pytest

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.definition import ConfigError
from kavka_broker.core.config.listeners import Listener, Listeners, protocol_map
from tests.support.cluster import PROPERTIES


def parse(**settings: str) -> BrokerConfig:
    return BrokerConfig.parse({**PROPERTIES, **{key.replace("_", "."): value for key, value in settings.items()}})


def test_listeners_are_parted_into_those_of_clients_and_controllers() -> None:
    config = parse()
    assert config.listeners.of_brokers == (Listener("PLAINTEXT", "127.0.0.1", 9092),)
    assert config.listeners.of_controllers == (Listener("CONTROLLER", "127.0.0.1", 9093),)
    assert config.listeners.advertised == config.listeners.of_brokers
    assert config.listeners.inter_broker_name == "PLAINTEXT"


@pytest.mark.parametrize(
    ("listener", "advertised", "found"),
    [
        ("CONTROLLER://10.0.0.1:9093", None, Listener("CONTROLLER", "10.0.0.1", 9093)),
        ("CONTROLLER://:9093", None, Listener("CONTROLLER", "localhost", 9093)),
        ("CONTROLLER://0.0.0.0:9093", None, Listener("CONTROLLER", "localhost", 9093)),
        ("CONTROLLER://0.0.0.0:9093", "PLAINTEXT://a:1", Listener("CONTROLLER", "localhost", 9093)),
        ("CONTROLLER://0.0.0.0:9093", "PLAINTEXT://a:1,CONTROLLER://b:2", Listener("CONTROLLER", "b", 2)),
    ],
)
def test_a_controller_is_found_where_it_advertises_itself(
    listener: str, advertised: str | None, found: Listener
) -> None:
    told = {} if advertised is None else {"advertised_listeners": advertised}
    config = parse(listeners=f"PLAINTEXT://127.0.0.1:9092,{listener}", **told)
    assert config.listeners.advertised_controllers == (found,)


def test_a_listener_may_be_of_six_bytes_or_of_none() -> None:
    config = parse(
        listeners="PLAINTEXT://[::1]:9092,CONTROLLER://:9093", advertised_listeners="PLAINTEXT://kafka.example:19092"
    )
    assert config.listeners.opened[0].host == "::1"
    assert str(config.listeners.opened[0]) == "PLAINTEXT://[::1]:9092"
    assert config.listeners.opened[1].host == ""
    assert config.listeners.advertised == (Listener("PLAINTEXT", "kafka.example", 19092),)


def test_a_listener_may_have_a_bound_of_its_own() -> None:
    assert parse().listeners.bounds["max.connections"] == {}
    assert parse(listener_name_plaintext_max_connections="7").listeners.bounds["max.connections"] == {"PLAINTEXT": 7}


@pytest.mark.parametrize(("port", "is_taken"), [(0, True), (65_535, True), (65_536, False)])
def test_a_port_is_of_sixteen_bits(port: int, is_taken: bool) -> None:
    listeners = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:9093"
    if is_taken:
        assert parse(listeners=listeners).listeners.of_brokers[0].port == port
    else:
        with pytest.raises(ConfigError, match="65536"):
            parse(listeners=listeners)


@pytest.mark.parametrize("item", ["PLAINTEXT", "INSIDE:NOTHING", "INSIDE:"])
def test_a_mapping_of_listeners_names_a_protocol(item: str) -> None:
    with pytest.raises(ConfigError, match="write NAME:PROTOCOL"):
        protocol_map("listener.security.protocol.map", ["inside:plaintext", item])
    assert protocol_map("listener.security.protocol.map", ["inside:plaintext"]) == {"INSIDE": "PLAINTEXT"}


def of_a_controller(**changes: object) -> Listeners:
    given = {
        "opened_texts": ("CONTROLLER://:9093",),
        "advertised_texts": None,
        "controller_names": ("CONTROLLER",),
        "inter_broker_name": "PLAINTEXT",
        "protocols": {"CONTROLLER": "PLAINTEXT", "INSIDE": "SSL"},
        "bounds": {},
    }
    return Listeners(**{**given, **changes})  # type: ignore[arg-type]


def test_a_controller_alone_needs_no_listener_for_clients() -> None:
    listeners = of_a_controller()
    listeners.check(["controller"])
    assert (listeners.of_brokers, listeners.advertised) == ((), ())
    with pytest.raises(ConfigError, match="has only controller listeners"):
        listeners.check(["broker"])


def test_the_protocol_of_a_listener_of_others_is_known_by_its_name() -> None:
    listeners = of_a_controller()
    assert listeners.protocol_of("INSIDE") == "SSL"
    with pytest.raises(ConfigError, match="does not tell the protocol of OUTSIDE; add OUTSIDE:SSL"):
        listeners.protocol_of("OUTSIDE")


def test_a_controller_listener_of_any_name_is_plain_text_where_no_map_is_set() -> None:
    assert parse(
        controller_listener_names="QUORUM", listeners="PLAINTEXT://:1,QUORUM://:2"
    ).listeners.of_controllers == (Listener("QUORUM", "", 2),)
    with pytest.raises(ConfigError, match="QUORUM has no protocol"):
        parse(
            controller_listener_names="QUORUM",
            listeners="PLAINTEXT://:1,QUORUM://:2",
            listener_security_protocol_map="PLAINTEXT:PLAINTEXT",
        )
