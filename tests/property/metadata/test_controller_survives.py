"""Power may be lost at any moment: what a controller has answered is there when it comes back, and nothing half."""

import asyncio
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from kavka_broker.controller.controller import Controller
from kavka_broker.core.metadata.decide.topics import CreateTopic, Defaults, create_topics
from tests.support.cluster import Machine, register_broker

Step = tuple[str, int]
steps = st.lists(
    st.tuples(st.sampled_from(["create", "burst", "snapshot", "restart", "lose power"]), st.integers(0, 2**32)),
    max_size=12,
)


class Story:
    """A controller, what it has answered, and what it might have written without an answer."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.answered: set[str] = set()
        self.asked = 0
        self.epochs = [0]

    async def start(self) -> Controller:
        controller = self.machine.open()
        await controller.quorum.start()
        await register_broker(controller, self.machine.config)
        assert controller.epoch > self.epochs[-1], "an epoch was led twice"
        self.epochs.append(controller.epoch)
        return controller

    async def create(self, controller: Controller) -> None:
        self.asked += 1
        name = f"t{self.asked}"
        command = CreateTopic(name, controller.new_uuid(), 2, 1)
        await controller.submit(lambda metadata, _: create_topics(metadata, [command], Defaults()))
        self.answered.add(name)

    def check(self, controller: Controller) -> None:
        there = set(controller.metadata.topics.names())
        assert self.answered <= there, f"lost: {self.answered - there}"
        assert all(len(topic.partitions) == 2 for topic in controller.metadata.topics), "half a decision is there"


async def tell(story: Story, told: list[Step]) -> None:
    controller = await story.start()
    for verb, seed in told:
        match verb:
            case "create":
                await story.create(controller)
            case "burst":
                await asyncio.gather(*(story.create(controller) for _ in range(4)))
            case "snapshot":
                await controller.snapshot()
            case "restart":
                await story.machine.stop(controller)
                controller = await story.start()
            case "lose power":
                # A request is on its way, and it will never be known whether it arrived.
                unanswered = asyncio.create_task(story.create(controller))
                await asyncio.sleep(0)
                unanswered.cancel()
                await story.machine.kill(controller)
                await asyncio.gather(unanswered, return_exceptions=True)
                story.machine.disk.crash(Random(seed))
                controller = await story.start()
        story.check(controller)


@settings(max_examples=40)
@given(told=steps)
def test_what_was_answered_survives(told: list[Step]) -> None:
    machine = Machine()
    machine.format()
    asyncio.run(tell(Story(machine), told))
