"""Clients outside of the Kubernetes: a port of the machine for each broker, which clients are told."""

from e2e.scene import Scene

OUTSIDE = {"name": "OUTSIDE", "port": 9094, "service": {"type": "NodePort"}}


def test_clients_reach_each_broker_by_a_port_of_its_machine(scene: Scene) -> None:
    """The client knows one broker only, and writes to leaders on all: it goes where brokers tell it to."""
    scene.wants(listeners=[{"name": "INSIDE", "port": 9092}, OUTSIDE])
    scene.until_ready()
    (told,) = scene.status()["listeners"]
    addresses = told["bootstrapServers"].split(",")
    assert (told["name"], len(set(addresses))) == ("OUTSIDE", 3)
    assert not any(".svc" in address or ":9094" in address for address in addresses)
    scene.produces(addresses[1])
    scene.has_lost_nothing(addresses[2])
