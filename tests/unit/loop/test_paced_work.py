"""Work in slices with a pause after each."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kavka_broker.loop.paced_work import PAUSE_MS, run_paced


class Ticks:
    """Timers whose time the test makes pass."""

    def __init__(self) -> None:
        self.waiting: list[tuple[float, Callable[[], object]]] = []

    def after(self, delay_ms: float, callback: Callable[[], object]) -> None:
        self.waiting.append((delay_ms, callback))

    def tick(self) -> None:
        ((delay_ms, callback),) = self.waiting
        assert delay_ms == PAUSE_MS
        self.waiting.clear()
        callback()


class Scene:
    """Work of three steps, of which the test sees what has been done."""

    def __init__(self, *, fails_at: int = -1) -> None:
        self.ticks: Any = Ticks()
        self.done: list[str] = []
        self.serves = True
        self._fails_at = fails_at

    def work(self) -> Iterator[None]:
        for step in range(3):
            if step == self._fails_at:
                raise OSError("the disk is gone")
            self.done.append(str(step))
            yield

    def run(self) -> None:
        run_paced(self.ticks, self.work(), holds=lambda: self.serves, then=lambda: self.done.append("then"))


def test_a_step_is_done_at_once_and_each_of_the_others_after_a_pause() -> None:
    scene = Scene()
    scene.run()
    assert scene.done == ["0"]
    scene.ticks.tick()
    scene.ticks.tick()
    assert scene.done == ["0", "1", "2"]
    scene.ticks.tick()
    assert (scene.done, scene.ticks.waiting) == (["0", "1", "2", "then"], [])


def test_work_is_given_up_when_its_condition_holds_no_more() -> None:
    scene = Scene()
    scene.run()
    scene.serves = False
    scene.ticks.tick()
    assert (scene.done, scene.ticks.waiting) == (["0", "then"], [])


def test_nothing_is_done_where_the_condition_never_held() -> None:
    scene = Scene()
    scene.serves = False
    scene.run()
    assert (scene.done, scene.ticks.waiting) == (["then"], [])


def test_work_that_fails_is_over_and_its_error_is_seen() -> None:
    scene = Scene(fails_at=1)
    scene.run()
    with pytest.raises(OSError, match="the disk is gone"):
        scene.ticks.tick()
    assert (scene.done, scene.ticks.waiting) == (["0", "then"], [])


def test_the_watchdog_names_the_work() -> None:
    scene = Scene()
    scene.run()
    ((_, callback),) = scene.ticks.waiting
    assert callback.__qualname__ == "Scene.work"
