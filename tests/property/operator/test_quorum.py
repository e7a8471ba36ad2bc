"""Any quorum, to any other, while controllers die, come back and lose their volumes: no change of ours ever takes the
majority away, and the voters end as the resource wants them."""

from dataclasses import dataclass, field
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from kavka_operator.domain.observed import (
    ControllerPlace,
    NodeState,
    SeenNode,
    SeenObserver,
    SeenQuorum,
    Survey,
    WantedNode,
)
from kavka_operator.domain.plan import AddVoter, RemoveVoter
from kavka_operator.kafka.roll_survey import doubt_about
from kavka_operator.reconcile.quorum import follow

TURNS_OF_TROUBLE = 60
TURNS_MAX = 400
NODES = 6


@dataclass
class Controller:
    directory: int = 0
    is_up: bool = True
    caught_up: bool = True

    @property
    def is_level(self) -> bool:
        return self.is_up and self.caught_up


@dataclass
class World:
    """Controllers of which some vote, with the directory that they had when they were given their vote."""

    random: Random
    wanted: set[int]
    voters: dict[int, int]
    controllers: dict[int, Controller]
    leader: int | None = None
    changes: list[str] = field(default_factory=list)

    def alive(self) -> set[int]:
        """The voters that count: up, level, and with the directory that votes."""
        return {
            n
            for n, votes in self.voters.items()
            if self.controllers[n].is_level and self.controllers[n].directory == votes
        }

    @property
    def lives(self) -> bool:
        return len(self.alive()) > len(self.voters) // 2

    def turn(self, *, trouble: bool) -> None:
        for number, controller in self.controllers.items():
            drawn = self.random.random()
            if not trouble:
                controller.is_up, controller.caught_up = True, controller.caught_up or drawn < 0.5
            elif drawn < 0.1 and self.can_spare(number):
                controller.is_up = controller.caught_up = False
                if self.random.random() < 0.4:
                    controller.directory += 1
            elif drawn < 0.6:
                controller.is_up = True
            else:
                controller.caught_up = controller.is_up
        if self.leader not in self.alive():
            self.leader = self.random.choice(sorted(self.alive())) if self.lives else None

    def can_spare(self, number: int) -> bool:
        """Whether the quorum survives this loss: what nobody could survive is not ours to show."""
        return len(self.alive() - {number}) > len(self.voters) // 2

    def survey(self) -> Survey:
        behind = {n: 0 if n in self.alive() else None for n in self.voters}
        observers = [
            SeenObserver(n, f"{n}.{found.directory}", 0 if found.caught_up else 9_000)
            for n, found in self.controllers.items()
            if found.is_up and self.voters.get(n) != found.directory
        ]
        directories = {n: f"{n}.{directory}" for n, directory in self.voters.items()}
        quorum = SeenQuorum(self.leader, tuple(sorted(self.voters)), behind, directories, tuple(observers))
        return Survey((), quorum, doubt_about(quorum))

    def nodes(self) -> list[WantedNode]:
        return [
            WantedNode(n, "new", controller=ControllerPlace(f"{n}.{self.controllers[n].directory}", f"host-{n}", 9093))
            for n in sorted(self.wanted)
        ]

    def look(self, *, is_lost: bool = False) -> bool:
        """One look and what follows; whether anything is left to do. Of a change, the answer may be lost."""
        states: dict[int, NodeState] = {n: "Running" if c.is_up else "Starting" for n, c in self.controllers.items()}
        plan = follow(self.nodes(), {n: SeenNode(n, state) for n, state in states.items()}, self.survey(), None)
        if plan is None:
            return False
        assert len(plan.actions) <= 1
        for action in plan.actions:
            assert isinstance(action, AddVoter | RemoveVoter)
            assert self.lives
            if not is_lost or self.random.random() < 0.5:
                self.apply(action)
            self.changes.append(str(action))
            assert self.lives, f"{action} has taken the majority away: {self.voters}, {self.controllers}"
        return True

    def apply(self, action: AddVoter | RemoveVoter) -> None:
        """What Kafka does, or refuses."""
        name, directory = action.directory_id.split(".")
        assert int(name) == action.node
        match action:
            case AddVoter():
                assert action.node not in self.voters
                self.voters[action.node] = int(directory)
            case RemoveVoter():
                assert self.voters.pop(action.node) == int(directory)
                assert self.voters


ids = st.sets(st.integers(0, NODES - 1), min_size=1, max_size=5)


@given(ids, st.lists(ids, min_size=1, max_size=3), st.integers(0, 2**32))
def test_the_voters_become_those_that_are_wanted(before: set[int], wishes: list[set[int]], seed: int) -> None:
    controllers = {number: Controller() for number in range(NODES)}
    world = World(Random(seed), set(before), dict.fromkeys(before, 0), controllers)
    for wish in wishes:
        world.wanted = wish
        for _ in range(TURNS_OF_TROUBLE):
            world.turn(trouble=True)
            world.look(is_lost=world.random.random() < 0.3)
    for _ in range(TURNS_MAX):
        world.turn(trouble=False)
        if not world.look():
            break
    assert world.voters == {number: controllers[number].directory for number in wishes[-1]}
