"""Sums over seeds: the same for any number of processes and slices, and never of another commit."""

import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.sim import watchdog, workers
from tests.sim.cluster import Outcome
from tests.sim.ledger import Ledger, Run, spans
from tests.sim.runner import ROOT, main
from tests.sim.totals import Totals

HERE = Run("c0ffee")


def outcome(seed: int, failure: str | None = None) -> Outcome:
    faults, refused = Counter(kill=seed), Counter(pause=1)
    return Outcome(seed, failure, f"digest {seed}", 10, 1.5, 7, faults, refused, Counter(ready=1), ())


def totals_of(*seeds: int, failed: int = 0) -> Totals:
    totals = Totals()
    for seed in seeds:
        totals.add(outcome(seed, "why" if seed == failed else None), 0.5)
    return totals


def test_totals_do_not_depend_on_the_slices() -> None:
    whole, first, second = totals_of(1, 2, 3, 4), totals_of(3, 4), totals_of(1, 2)
    first.add_all(second)
    assert first.digest == whole.digest
    assert (first.faults, first.refused, first.seconds) == (whole.faults, whole.refused, whole.seconds)
    assert totals_of(1, 2, 3).digest != whole.digest


def test_a_ledger_goes_on_where_it_was_broken_off(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    Ledger(path, HERE).add(totals_of(1, 2))
    again = Ledger(path, HERE)
    assert again.missing(range(1, 5)) == [3, 4]
    again.add(totals_of(3, 4, failed=4))
    assert Ledger(path, HERE).totals() == again.totals()
    assert again.totals().digest == totals_of(1, 2, 3, 4).digest
    assert again.totals().failed == [4]


@pytest.mark.parametrize("other", [Run("badcab"), Run("c0ffee", "nodes 5"), Run("c0ffee+")])
def test_what_was_run_of_another_commit_counts_for_nothing(tmp_path: Path, other: Run) -> None:
    path = tmp_path / "ledger"
    Ledger(path, other).add(totals_of(1, 2))
    ledger = Ledger(path, HERE)
    assert ledger.missing(range(1, 4)) == [1, 2, 3]
    assert not ledger.totals().digests
    assert ledger.table().count("\n") == 2


def test_seeds_with_another_digest_than_at_an_earlier_commit_are_named(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    before = totals_of(1, 2, 3, 4)
    before.digests[3] = "another"
    Ledger(path, Run("badcab")).add(before)
    Ledger(path, Run("ba5eba11")).add(totals_of(8))
    Ledger(path, Run("badcab", "nodes 5")).add(before)
    ledger = Ledger(path, HERE)
    assert ledger.changed() == {}
    ledger.add(totals_of(2, 3, 5))
    assert ledger.changed() == {Run("badcab"): [3]}


def test_the_table_is_what_the_document_has() -> None:
    table = (ROOT / "docs" / "explanation" / "simulation.md").read_text()
    assert Ledger(Path("/nowhere"), HERE).table() in table


def test_seeds_are_shown_as_spans() -> None:
    assert spans([1, 2, 3, 7, 9, 10]) == "1-3, 7, 9-10"


def test_jobs_and_slices_change_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def digest() -> str:
        return capsys.readouterr().out.split("digest of totals ")[-1].split()[0]

    seeds = ["--first", "8", "--seeds", "3", "--nodes", "1", "--keep-going"]
    main([*seeds])
    alone = digest()
    main([*seeds, "--jobs", "2"])
    assert digest() == alone
    path = str(tmp_path / "ledger")
    main(["--first", "9", "--seeds", "1", "--nodes", "1", "--ledger", path])
    capsys.readouterr()
    main([*seeds, "--jobs", "2", "--ledger", path])
    assert digest() == alone
    assert len(Path(path).read_text().splitlines()) == 2


@pytest.fixture
def plays(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """What a worker does with a seed."""
    return partial(monkeypatch.setattr, workers, "run_timed")


def test_a_seed_whose_process_is_gone_has_failed(plays: Callable[[Any], None]) -> None:
    def run(seed: int, *_: Any) -> tuple[Outcome, float]:
        if seed == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return outcome(seed), 0.5

    plays(run)
    found = [played for played, _ in workers.run_seeds([1, 2, 3], None, (), jobs=2)]
    assert [played.seed for played in found] == [1, 2, 3]
    assert [played.failure for played in found] == [None, "its process has ended with -9", None]


def test_a_worker_has_a_limit_to_its_memory(plays: Callable[[Any], None]) -> None:
    def run(seed: int, *_: Any) -> tuple[Outcome, float]:
        with pytest.raises(MemoryError):
            bytearray(watchdog.ADDRESSES_BYTES_MAX + 1)
        return outcome(seed), 0.5

    plays(run)
    assert [played for played, _ in workers.run_seeds([1], None, (), jobs=1)] == [outcome(1)]


def test_who_has_seen_enough_leaves_no_process_behind(plays: Callable[[Any], None]) -> None:
    def run(seed: int, *_: Any) -> tuple[Outcome, float]:
        if seed > 1:
            signal.pause()
        return outcome(seed), 0.5

    plays(run)
    running = workers.run_seeds(range(1, 5), None, (), jobs=2)
    assert next(running)[0].seed == 1
    running.close()
    assert not multiprocessing.active_children()
