"""`kavka audit run --processing-time`: one query of Spark that goes on, and answers from its tables every so often.

What passes is said, and tried again: a cluster that does not answer, a query that ends because of it. What does not
pass ends the run: tables that cannot be gone on with, options, and whatever is wrong before the first answers.
"""

import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from threading import Event
from typing import TYPE_CHECKING, Final

from kavka_audit.engine import EngineError
from kavka_audit.lake.directory import Lake, LakeError
from kavka_audit.lake.errors import told
from kavka_audit_run.destination import lake_of
from kavka_audit_run.main import Wanted, answer_from, check, observed, opened, print_answers, progress, with_format
from kavka_cli.output import CommandError, complain
from kavka_cli.target import TargetOptions
from kavka_operator.kafka.admin import AdminError

if TYPE_CHECKING:
    from kavka_audit.spark.live_query import LiveQuery

RETRY_SECONDS_MAX: Final = 60


def run_live(asked: TargetOptions, wanted: Wanted, trigger_seconds: int, every_seconds: int) -> int:
    """Run until Ctrl-C, or SIGTERM; the exit code."""
    try:
        _run_live(asked, wanted, trigger_seconds, every_seconds)
    except (CommandError, AdminError, LakeError, EngineError) as error:
        return complain(error)
    except KeyboardInterrupt:  # before the query went on
        pass
    return 0


def _run_live(asked: TargetOptions, wanted: Wanted, trigger_seconds: int, every_seconds: int) -> None:
    from kavka_audit.spark.delta_engine import DeltaSpark

    wanted = with_format(wanted)
    check(wanted)
    lake = lake_of(wanted, progress)
    with observed(asked, wanted) as seen:
        found, topic_id, cluster_id = seen.found, seen.accounted.topic_id, seen.snapshot.cluster_id
    with opened(wanted, found, topic_id) as engine, told(lake), lake.held(cluster_id):
        assert isinstance(engine, DeltaSpark), wanted
        with observed(asked, wanted) as seen:
            print_answers(*answer_from(asked, wanted, seen, lake, engine))
        with closing(engine.live(lake, trigger_seconds)) as live, stopping() as is_stopping:
            _go_on(asked, wanted, lake, live, every_seconds, is_stopping)


@contextmanager
def stopping() -> Iterator[Event]:
    """Give what Ctrl-C and SIGTERM set: what is being done is ended first. A second one ends the process at once."""
    is_stopping = Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def stop(*_: object) -> None:
        is_stopping.set()
        for number in before:
            signal.signal(number, signal.SIG_DFL)

    for number in before:
        signal.signal(number, stop)
    try:
        yield is_stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _go_on(
    asked: TargetOptions, wanted: Wanted, lake: Lake, live: "LiveQuery", every_seconds: int, is_stopping: Event
) -> None:
    """Answer every so often. After a failure, try again: soon, and then less often."""
    pause = 1
    while not is_stopping.is_set():
        try:
            if not live.is_running:
                with observed(asked, wanted) as seen:
                    live.follow(seen.trail)
            if live.wait(every_seconds, is_stopping):
                _answer(asked, wanted, lake, live)
            pause = 1
        except (CommandError, AdminError, EngineError) as error:
            complain(error)
            is_stopping.wait(pause)
            pause = min(2 * pause, RETRY_SECONDS_MAX)


def _answer(asked: TargetOptions, wanted: Wanted, lake: Lake, live: "LiveQuery") -> None:
    with observed(asked, wanted) as seen:
        with live.at_rest():
            answers = answer_from(asked, wanted, seen, lake, live)
        print_answers(*answers)
        live.follow(seen.trail)
