"""What is taken away is judged by what is there, not by a list that the watch was slow to put in doubt."""

from kavka_operator.domain.plan import RestartNode, StopNode
from tests.unit.operator.pods import Scene, main


def silent() -> Scene:
    """A cluster that is to be rolled, and whose watch says no more."""
    scene = Scene()
    scene.start()
    scene.wanted = main(image="kavka/broker:2")
    scene.host.news = lambda: 0
    scene.look()
    return scene


def test_no_node_is_restarted_where_another_went_away_unheard() -> None:
    scene = silent()
    scene.api.say("main-nodes-2-0", phase="Pending")
    before = len(scene.api.writes)
    scene.do(RestartNode(1, "spec.image has changed"))
    scene.do(StopNode(1))
    assert scene.api.writes[before:] == []
    assert scene.look().seen[2].state == "Starting"


def test_nodes_that_may_go_together_do() -> None:
    scene = silent()
    before = len(scene.api.writes)
    scene.do(RestartNode(1, "spec.image has changed"), RestartNode(2, "spec.image has changed"))
    assert [words for words in scene.api.writes[before:] if words.startswith("delete")] == [
        "delete Pod main-nodes-1-0",
        "delete Pod main-nodes-2-0",
    ]
