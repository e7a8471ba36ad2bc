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


def test_the_loop_goes_on_while_connections_are_closed() -> None:
    source, main = Slow(), threading.get_ident()
    source.may_answer.set()
    closing = list[int]()

    async def play() -> None:
        source.close = lambda: closing.append(threading.get_ident())  # type: ignore[method-assign]
        watch = Watch(lambda: source, 60.0)
        async with watch.watched():
            await until(lambda: watch.version > 0)
        await watch.close()

    asyncio.run(play())
    assert len(closing) == 1
    assert closing != [main]


def test_connections_of_a_look_that_fails_are_closed_beside_the_loop() -> None:
    closing = list[int]()

    class Odd(Slow):
        def take(self) -> Look:
            raise RuntimeError("the library has a defect")

        def close(self) -> None:
            closing.append(threading.get_ident())
            raise RuntimeError("nor does this work")

    async def play() -> None:
        watch = Watch(Odd, 60.0)
        async with watch.watched():
            await until(lambda: watch.version > 0)
        assert "the library has a defect" in watch.trouble
        await watch.close()

    asyncio.run(play())
    assert len(closing) == 1
    assert closing != [threading.get_ident()]


def test_a_page_that_comes_while_connections_are_closed_is_looked_for() -> None:
    closing, may_close = threading.Event(), threading.Event()

    class Lasting(Slow):
        def close(self) -> None:
            closing.set()
            may_close.wait(60)

    async def play() -> None:
        source = Lasting()
        source.may_answer.set()
        watch = Watch(lambda: source, 0.0, linger_seconds=0.0)
        async with watch.watched():
            await until(lambda: watch.version > 0)
        await until(closing.is_set)
        version = watch.version
        async with watch.watched():
            may_close.set()
            await until(lambda: watch.version > version)
        await watch.close()

    asyncio.run(play())
