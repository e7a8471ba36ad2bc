"""What each bench of its own has around its cases: a directory, the floors of the machine, and the result's files."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench import processes, report
from bench.__main__ import FULL, RESULTS, Run, environment, told_floors
from bench.brokers import compile_kavka

OF_OTHER_SECTIONS: Final = ("repetitions", "records", "operations", "warm_up_seconds")


@contextmanager
def measuring(name: str, output: Path | None, *, nice: int = 0, **about: object) -> Iterator[tuple[Run, Path]]:
    """A run and a directory for its brokers, all of which end behind it; then the result is told and written, to
    `output` or to a file of this name and date. `about` is what a reader has to know besides the environment.
    """
    started = time.time()
    processes.end_all_at_exit()
    compile_kavka()
    root = Path(tempfile.mkdtemp(prefix="kavka-bench-"))
    run, found = Run(nice), told_floors(root)
    try:
        yield run, root
    finally:
        processes.stop_all()
        shutil.rmtree(root, ignore_errors=True)
    whole = environment(FULL, started, found)
    told = {key: value for key, value in whole.items() if key not in OF_OTHER_SECTIONS} | about
    print("\n" + report.text(run.measures))
    path = output or RESULTS / time.strftime(f"%Y-%m-%d-%H%M-{name}", time.gmtime(started))
    report.write(path, run.measures, told)
    print(f"written to {path}.json and {path}.md")
