"""What the operator decides about voters, carried out on a real quorum: 3 -> 4 -> 3, and a lost volume."""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kavka_operator.domain.observed import ControllerPlace, SeenNode, Survey, WantedNode
from kavka_operator.domain.plan import AddVoter, RemoveVoter
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.client import KafkaClient
from kavka_operator.reconcile.quorum import follow
from tests.support.nodes import Nodes, Place, apart, cluster, format_node

pytestmark = [pytest.mark.slow, pytest.mark.extended]

SETTINGS = {
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
FIRST, LAST, LATE = 100, 102, 103


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """Three controllers that vote, one that observes, and a broker."""
    with cluster(tmp_path_factory.mktemp("voters"), apart(controllers=4, brokers=1), SETTINGS, late=[LATE]) as running:
        yield running


def directory_id(nodes: Nodes, number: int) -> str:
    """The id of the directory that a node has now."""
    lines = (nodes[number].data / "meta.properties").read_text().splitlines()
    return next(line.partition("=")[2] for line in lines if line.startswith("directory.id"))


def wanted(nodes: Nodes, controllers: Iterable[int]) -> list[WantedNode]:
    places = {place.node_id: place for place in nodes.places}
    return [
        WantedNode(
            number,
            "as it is",
            roles=("controller",),
            controller=ControllerPlace(directory_id(nodes, number), "127.0.0.1", places[number].controller_port),
        )
        for number in controllers
    ]


def bring(nodes: Nodes, *controllers: int) -> list[str]:
    """Let the voters follow what is wanted, as the operator's loop does; the changes that were decided, in their order.

    A change may be made although its answer is lost, with a leader that steps down, and is decided again if it is not.
    """
    decided: dict[str, None] = {}
    running = {place.node_id: SeenNode(place.node_id, "Running") for place in nodes.places}

    with closing(KafkaClient(nodes.bootstrap)) as client:

        def is_done() -> bool:
            found = survey(client)
            plan = follow(wanted(nodes, controllers), running, found, None)
            for action in plan.actions if plan is not None else ():
                assert isinstance(action, AddVoter | RemoveVoter)
                decided[f"{'+' if isinstance(action, AddVoter) else '-'}{action.node}"] = None
                is_carried_out(client, action)
            voting = {} if found is None else found.quorum.directories
            return plan is None and voting == {number: directory_id(nodes, number) for number in controllers}

        nodes.wait(f"controllers {controllers} vote", is_done)
    return list(decided)


def survey(client: KafkaClient) -> Survey | None:
    """What the cluster tells; None while it changes its leader, as in the loop."""
    try:
        return client.survey()
    except AdminError as error:
        if not error.retriable:
            raise
        return None


def lose_the_volume(nodes: Nodes, number: int) -> None:
    """Kill a controller, and start it with an empty directory that is formatted again."""
    place: Place = next(place for place in nodes.places if place.node_id == number)
    nodes.kill(number)
    home: Path = nodes[number].directory
    shutil.rmtree(nodes[number].data)
    format_node(home, place, nodes.places, home / "server.properties", static=False, late=[number])
    nodes.start(number)


def test_controllers_are_added_healed_and_removed(nodes: Nodes) -> None:
    assert bring(nodes, FIRST, 101, LAST, LATE) == [f"+{LATE}"]
    before = directory_id(nodes, LAST)
    lose_the_volume(nodes, LAST)
    assert directory_id(nodes, LAST) != before
    assert bring(nodes, FIRST, 101, LAST, LATE) == [f"-{LAST}", f"+{LAST}"]
    assert bring(nodes, FIRST, 101, LAST) == [f"-{LATE}"]
    assert bring(nodes, FIRST, 101, LAST) == []


def test_a_vote_that_is_given_or_taken_twice_does_no_harm(nodes: Nodes) -> None:
    place = next(place for place in nodes.places if place.node_id == LATE)
    late = directory_id(nodes, LATE)
    add = AddVoter(LATE, late, "127.0.0.1", place.controller_port)
    with closing(KafkaClient(nodes.bootstrap)) as client:
        for action in (add, add, RemoveVoter(LATE, late), RemoveVoter(LATE, late)):
            nodes.wait(str(action), lambda action=action: is_carried_out(client, action))  # type: ignore[misc]
        nodes.wait(
            "its vote is gone", lambda: (found := survey(client)) is not None and LATE not in found.quorum.voters
        )


def is_carried_out(client: KafkaClient, action: AddVoter | RemoveVoter) -> bool:
    try:
        client.perform(action)
    except AdminError as error:
        if not error.retriable:
            raise
        return False
    return True


def test_a_broker_that_the_controllers_do_not_reach_is_not_believed(nodes: Nodes) -> None:
    """Without a majority nothing is committed; what the broker tells is from before."""
    with closing(KafkaClient(nodes.bootstrap)) as client:
        nodes.wait("the survey is believed", lambda: not is_doubted(client))
        nodes.kill(101, LAST)
        nodes.wait("the survey is doubted, or refused", lambda: is_doubted(client))
        nodes.start(101, LAST)
        nodes.wait("the survey is believed again", lambda: not is_doubted(client))


def is_doubted(client: KafkaClient) -> bool:
    found = survey(client)
    return found is None or bool(found.doubt)
