"""Listeners that clients outside of a Kubernetes reach: their Services, and what brokers tell of themselves."""

from typing import Any

import pytest

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.properties import parse_properties
from kavka_operator.domain.plan import RestartNode, StartNode
from kavka_operator.loop.interfaces import PlatformUnavailableError
from tests.unit.operator.pods import RUNS, Scene, main

INSIDE = {"name": "INSIDE", "port": 9092}


def exposed(kind: str, **more: Any) -> Scene:
    """A cluster with a listener for clients outside."""
    service = {"type": kind, **more.pop("service", {})}
    return Scene(main(listeners=[{"name": "OUTSIDE", "port": 9094, "service": service, **more}, INSIDE]))


def give(scene: Scene, name: str, port: int | None = None, **ingress: str) -> None:
    """Let a Service have what Kubernetes gives it: a port of machines, an address of a load balancer."""
    found = scene.api.one("Service", name)
    ports = [{**found["spec"]["ports"][0], **({"nodePort": port} if port else {})}]
    status = {"loadBalancer": {"ingress": [ingress]}} if ingress else {}
    scene.api.place({**found, "spec": {**found["spec"], "ports": ports}, "status": status})


def given_ports() -> Scene:
    """A cluster whose brokers have ports of machines, and run on one each."""
    scene = exposed("NodePort")
    scene.look()
    for number in range(3):
        give(scene, f"main-nodes-{number}-9094", 30000 + number)
    give(scene, "main-bootstrap-9094", 30009)
    scene.start()
    for number in range(3):
        scene.api.say(f"main-nodes-{number}-0", **RUNS, hostIP=f"192.0.2.{number}")
    return scene


def test_clients_inside_begin_at_the_service_of_all_brokers() -> None:
    scene = Scene(main())
    assert scene.look().begin == "main-bootstrap.default.svc:9092"
    assert exposed("NodePort").look().begin == "", "the first listener leads outside"
    told = Scene(
        main(listeners=[{**INSIDE, "advertised": "kafka-{id}.example.com:9092"}, INSIDE | {"name": "B", "port": 9093}])
    )
    assert told.look().begin == ""


def container(scene: Scene, number: int) -> dict[str, Any]:
    (found,) = scene.api.one("Pod", f"main-nodes-{number}-0")["spec"]["containers"]
    return dict(found)


def test_a_broker_says_the_port_of_its_service_and_the_address_of_its_machine() -> None:
    scene = given_ports()
    spec = scene.api.one("Service", "main-nodes-1-9094")["spec"]
    assert (spec["type"], spec["externalTrafficPolicy"]) == ("NodePort", "Local")
    assert spec["selector"] == {"kavka.dev/cluster": "main", "kavka.dev/node-id": "1"}
    found = container(scene, 1)
    (override,) = [word for word in found["args"] if word.startswith("--override=")]
    assert override.startswith("--override=advertised.listeners=OUTSIDE://$(KAVKA_HOST_IP):30001,INSIDE://main-nodes-1")
    assert found["env"] == [{"name": "KAVKA_HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}]
    view = scene.look()
    assert view.outside == {"OUTSIDE": "192.0.2.0:30000,192.0.2.1:30001,192.0.2.2:30002"}
    assert "30001" not in view.bootstrap, "the operator asks inside"
    assert all(node.fingerprint == view.seen[node.id].fingerprint for node in view.wanted)


def test_what_is_formatted_and_what_runs_is_a_configuration_of_the_broker() -> None:
    scene = given_ports()
    settings = parse_properties(scene.api.one("Pod", "main-nodes-0-0")["metadata"]["annotations"]["kavka.dev/settings"])
    assert BrokerConfig.parse(settings).listeners.inter_broker_name == "INSIDE"
    (override,) = [word for word in container(scene, 0)["args"] if word.startswith("--override=")]
    key, _, value = override.removeprefix("--override=").partition("=")
    told = BrokerConfig.parse({**settings, key: value.replace("$(KAVKA_HOST_IP)", "192.0.2.7")})
    assert "OUTSIDE://192.0.2.7:30000" in [str(listener) for listener in told.listeners.advertised]


def test_a_node_waits_for_the_address_of_its_load_balancer() -> None:
    scene = exposed("LoadBalancer")
    scene.look()
    with pytest.raises(PlatformUnavailableError, match="Service main-nodes-0-9094 has no address yet"):
        scene.do(StartNode(0))
    assert scene.api.names("StatefulSet") == []
    give(scene, "main-nodes-0-9094", ip="192.0.2.1")
    give(scene, "main-nodes-1-9094", hostname="two.example.com")
    give(scene, "main-nodes-2-9094", ip="2001:db8::3")
    give(scene, "main-bootstrap-9094", ip="192.0.2.9")
    scene.start()
    told = [
        parse_properties(
            scene.api.one("Pod", f"main-nodes-{number}-0")["metadata"]["annotations"]["kavka.dev/settings"]
        )
        for number in range(3)
    ]
    outside = [settings["advertised.listeners"].split(",")[0] for settings in told]
    assert outside == ["OUTSIDE://192.0.2.1:9094", "OUTSIDE://two.example.com:9094", "OUTSIDE://[2001:db8::3]:9094"]
    assert scene.look().outside == {"OUTSIDE": "192.0.2.9:9094"}
    assert "env" not in container(scene, 0)


def test_an_address_that_changes_restarts_the_broker_and_one_that_goes_does_not() -> None:
    scene = exposed("LoadBalancer")
    scene.look()
    for name in ("main-nodes-0-9094", "main-nodes-1-9094", "main-nodes-2-9094"):
        give(scene, name, ip="192.0.2.1")
    before = scene.start()
    give(scene, "main-nodes-0-9094")
    assert [node.fingerprint for node in scene.look().wanted] == [node.fingerprint for node in before.wanted]
    give(scene, "main-nodes-0-9094", ip="192.0.2.5")
    view = scene.look()
    assert view.wanted[0].fingerprint != before.wanted[0].fingerprint
    assert view.seen[0].changed == ("advertised.listeners",)
    assert not view.seen[0].is_as_asked, "it is no matter of another version of the operator"


def test_a_port_of_machines_that_changes_is_told_as_the_reason() -> None:
    scene = given_ports()
    give(scene, "main-nodes-1-9094", 30555)
    view = scene.look()
    assert [view.seen[number].changed for number in range(3)] == [(), ("advertised.listeners",), ()]


def test_a_listener_that_gets_a_service_waits_for_it_before_a_restart() -> None:
    scene = Scene(main(listeners=[INSIDE]))
    scene.start()
    pods = [scene.api.one("Pod", f"main-nodes-{number}-0")["metadata"]["uid"] for number in range(3)]
    scene.wanted = exposed("LoadBalancer").wanted
    scene.look()
    assert scene.look().seen[0].changed == ("listener.security.protocol.map",)
    with pytest.raises(PlatformUnavailableError, match="no address yet"):
        scene.do(RestartNode(0, "its listeners"))
    assert [scene.api.one("Pod", f"main-nodes-{number}-0")["metadata"]["uid"] for number in range(3)] == pods


def test_clients_may_be_told_names_with_the_port_of_machines() -> None:
    scene = exposed("NodePort", advertised="kafka-{id}.example.com:{nodePort}")
    scene.look()
    for number in range(3):
        give(scene, f"main-nodes-{number}-9094", 30000 + number)
    scene.start()
    assert scene.look().outside == {"OUTSIDE": ",".join(f"kafka-{n}.example.com:3000{n}" for n in range(3))}
    assert "env" not in container(scene, 0)


def test_annotations_name_the_broker() -> None:
    scene = exposed("LoadBalancer", service={"annotations": {"example.com/host": "kafka-{id}.example.com"}})
    scene.look()
    names = ("main-nodes-2-9094", "main-bootstrap-9094")
    found = [scene.api.one("Service", name)["metadata"]["annotations"]["example.com/host"] for name in names]
    assert found == ["kafka-2.example.com", "kafka-bootstrap.example.com"]


def test_services_go_when_the_last_node_that_clients_reach_by_them_has_gone_or_restarted() -> None:
    scene = given_ports()
    service = {"type": "NodePort"}
    scene.wanted = main(replicas=2, listeners=[{"name": "OUTSIDE", "port": 9094, "service": service}, INSIDE])
    scene.look()
    assert "main-nodes-2-9094" in scene.api.names("Service"), "it still serves"
    del scene.api.objects["StatefulSet", "main-nodes-2"]
    scene.api.control()
    scene.look()
    assert "main-nodes-2-9094" not in scene.api.names("Service")
    scene.wanted = main(replicas=2, listeners=[INSIDE])
    scene.look()
    assert {"main-nodes-0-9094", "main-nodes-1-9094"} < {*scene.api.names("Service")}, "both still serve by them"
    scene.do(RestartNode(0, ""))
    scene.run()
    scene.look()
    assert scene.api.names("Service") == ["main-bootstrap", "main-bootstrap-9094", "main-nodes", "main-nodes-1-9094"]
    scene.do(RestartNode(1, ""))
    scene.run()
    scene.look()
    assert scene.api.names("Service") == ["main-bootstrap", "main-nodes"]


def test_at_rest_no_service_is_written() -> None:
    scene = given_ports()
    before = len(scene.api.writes)
    scene.look()
    scene.begin()
    scene.look()
    assert len(scene.api.writes) == before


def test_another_port_of_a_listener_is_told_as_the_reason() -> None:
    scene = Scene(main(listeners=[INSIDE]))
    scene.start()
    scene.wanted = main(listeners=[{**INSIDE, "port": 9095}])
    assert scene.look().seen[0].changed == ("listeners",)
