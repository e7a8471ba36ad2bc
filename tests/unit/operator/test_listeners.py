"""A changed port: each node is asked where it listens, and both ports are let in until the last node is level."""

from typing import Any

import pytest

from kavka_broker.core.config.properties import parse_properties
from kavka_operator.domain.plan import RestartNode
from kavka_operator.platform.kubernetes.objects.former_ports import Ports
from kavka_operator.platform.kubernetes.observe.listeners import ports_in
from tests.unit.operator.pods import RUNS, Scene, main

BEFORE, AFTER = [{"name": "PLAINTEXT", "port": 9092}], [{"name": "PLAINTEXT", "port": 9192}]


def moved(listeners: list[dict[str, Any]] | None = None, **spec: Any) -> Scene:
    """A cluster that runs, and whose resource has other ports since."""
    scene = Scene(main(listeners=BEFORE))
    scene.start()
    scene.wanted = main(listeners=listeners or AFTER, **spec)
    return scene


def restart(scene: Scene, number: int) -> None:
    scene.do(RestartNode(number, "its port has changed"))
    scene.api.say(f"main-nodes-{number}-0", **RUNS)


def served(scene: Scene, name: str) -> dict[int, str | int]:
    """The ports of a Service, each with where it leads."""
    ports = scene.api.one("Service", name)["spec"]["ports"]
    assert len({port["name"] for port in ports}) == len({port["port"] for port in ports}) == len(ports)
    return {port["port"]: port["targetPort"] for port in ports}


def let_in(scene: Scene) -> list[set[int]]:
    """The ports that everybody may come to, and those for nodes alone."""
    rules = scene.api.one("NetworkPolicy", "main-nodes")["spec"]["ingress"]
    return [{port["port"] for port in rule["ports"]} for rule in rules]


def at(number: int, port: int) -> str:
    return f"main-nodes-{number}-0.main-nodes.default.svc:{port}"


def test_each_node_is_asked_where_its_own_settings_say_that_it_listens() -> None:
    scene = moved(metrics={"port": 9700})
    view = scene.look()
    assert view.bootstrap == ",".join(at(number, 9092) for number in range(3))
    assert [place for place, _ in view.places.values()] == [at(number, 9092) for number in range(3)]
    assert set(view.metrics.values()) == {"10.1.0.7:9644"}
    assert view.seen[0].changed == ("listeners",)
    restart(scene, 0)
    view = scene.look()
    assert view.bootstrap == ",".join([at(0, 9192), at(1, 9092), at(2, 9092)])
    assert [view.metrics[number] for number in range(3)] == ["10.1.0.7:9700", "10.1.0.7:9644", "10.1.0.7:9644"]


def test_services_and_the_policy_hold_both_worlds_until_the_last_node_is_level() -> None:
    scene = moved()
    scene.look()
    for number in range(3):
        assert served(scene, "main-bootstrap") == {9192: "l-plaintext", 9092: "l-plaintext"}
        assert served(scene, "main-nodes").keys() == {9192, 9092, 10192, 10092}
        assert let_in(scene) == [{9192, 9092, 9644}, {10192, 10092}]
        restart(scene, number)
        scene.look()
    assert served(scene, "main-bootstrap") == {9192: 9192}
    assert served(scene, "main-nodes").keys() == {9192, 10192}
    assert let_in(scene) == [{9192, 9644}, {10192}]
    before = len(scene.api.writes)
    scene.look()
    assert len(scene.api.writes) == before


def test_a_node_that_restarts_looks_for_controllers_in_both_worlds() -> None:
    scene = moved()
    scene.look()
    restart(scene, 1)
    settings = scene.api.one("Pod", "main-nodes-1-0")["metadata"]["annotations"]["kavka.dev/settings"]
    servers = parse_properties(settings)["controller.quorum.bootstrap.servers"].split(",")
    assert servers == [at(number, port) for port in (10192, 10092) for number in range(3)]
    view = scene.look()
    wanted = {node.id: node.fingerprint for node in view.wanted}
    assert view.seen[1].fingerprint == wanted[1], "where controllers were before restarts nobody"


def test_a_port_that_passes_to_another_listener_leads_to_whoever_has_it() -> None:
    scene = moved([{"name": "CLIENTS", "port": 9092}])
    scene.look()
    assert served(scene, "main-bootstrap") == {9092: 9092}
    scene = moved([{"name": "CLIENTS", "port": 9192}])
    scene.look()
    assert served(scene, "main-bootstrap") == {9192: "l-clients", 9092: "l-plaintext"}
    assert scene.look().bootstrap == ",".join(at(number, 9092) for number in range(3))


@pytest.mark.parametrize(
    ("settings", "ports"),
    [
        ("", Ports()),
        ("listeners=A://:1,CONTROLLER://:2\ninter.broker.listener.name=A\n", Ports((("A", 1),), 2, None, 1)),
        ("listeners=CONTROLLER://:2\nkavka.admin.listener=:9644\n", Ports((), 2, 9644, None)),
        ("listeners=A://[::1]:7,B://host\ninter.broker.listener.name=B\n", Ports((("A", 7),), None, None, None)),
    ],
)
def test_ports_are_read_from_settings(settings: str, ports: Ports) -> None:
    assert ports_in(settings) == ports
