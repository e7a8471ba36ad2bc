"""A watch over a cluster that is closed while a look is under way."""

import asyncio
import threading
from dataclasses import dataclass, field

from kavka_operator.live_views.model import Look
from kavka_operator.live_views.watch import Watch
from tests.support.waiting import until
from tools.top_picture import look


@dataclass
class Slow:
    """A cluster that answers once it may."""

    may_answer: threading.Event = field(default_factory=threading.Event)
    asked: threading.Event = field(default_factory=threading.Event)
    answered: list[bool] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)

    def take(self) -> Look:
        self.asked.set()
        self.may_answer.wait(60)
        self.answered.append(True)
        return look(len(self.answered))

    def close(self) -> None:
        self.closed.append(len(self.answered))


async def closed_meanwhile(source: Slow) -> None:
    watch = Watch(lambda: source, 0.0)
    async with watch.watched():
        await until(source.asked.is_set)
    await watch.close()


def test_a_source_is_closed_by_the_look_that_uses_it_and_not_under_it() -> None:
    source = Slow()

    async def play() -> None:
        await closed_meanwhile(source)
        assert source.closed == []
        source.may_answer.set()
        await until(lambda: source.closed == [1])

    asyncio.run(play())


def test_between_two_looks_it_is_closed_at_once() -> None:
    source = Slow()
    source.may_answer.set()

    async def play() -> None:
        watch = Watch(lambda: source, 60.0)
        async with watch.watched():
            await until(lambda: watch.version > 0)
        await watch.close()
        assert source.closed == [1]

    asyncio.run(play())
