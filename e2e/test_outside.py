"""Clients outside of the Kubernetes: each broker has a port of its machine or a load balancer, and tells clients so."""

import json

from e2e.cluster_namespace import Scene
from e2e.kubectl import until

BALANCED = {"name": "BALANCED", "port": 9095, "service": {"type": "LoadBalancer"}}
BALANCERS = "198.51.100"
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


def balancers(scene: Scene) -> list[str]:
    """The names of the Services that ask for a load balancer."""
    found = json.loads(scene.ask("get", "services", "--output", "json"))["items"]
    return sorted(each["metadata"]["name"] for each in found if each["spec"]["type"] == "LoadBalancer")


def test_clients_come_by_a_load_balancer_of_each_broker(scene: Scene) -> None:
    """The test stands in the place of a cloud, and gives each Service an address, which kube-proxy then leads on."""
    scene.wants(listeners=[{"name": "INSIDE", "port": 9092}, BALANCED])
    until(lambda: len(balancers(scene)) == 4)
    until(lambda: "has no address yet" in scene.words("Stalled"))
    assert scene.pods() == {}
    for number, name in enumerate(balancers(scene), 1):
        status = {"status": {"loadBalancer": {"ingress": [{"ip": f"{BALANCERS}.{number}"}]}}}
        scene.ask("patch", "service", name, "--subresource", "status", "--type", "merge", "--patch", json.dumps(status))
    scene.until_ready()
    (told,) = scene.status()["listeners"]
    assert told["name"] == "BALANCED"
    assert set(told["bootstrapServers"].split(",")) <= {f"{BALANCERS}.{number}:9095" for number in range(1, 5)}
    scene.produces(told["bootstrapServers"].partition(",")[0])
    scene.has_lost_nothing(told["bootstrapServers"].partition(",")[0])
