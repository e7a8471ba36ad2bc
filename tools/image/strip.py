"""Takes out of the Python that runs it what the operator's image does not need, and prints what is left.

The package `kubernetes` holds each call twice, 57 MB for threads and 68 MB for asyncio (`kubernetes.aio`), and its head
imports the first. The operator takes nothing but the second. Commands that need other libraries come in one
distribution with `kavka`; here they could not run. `kavka top --once` needs none of them.
"""

import shutil
import sysconfig
from pathlib import Path

KEPT = {"__init__.py", "aio", "py.typed"}
OTHER_COMMANDS = ("kavka_audit_run", "kavka_demo", "kavka_pytest")


def strip(kubernetes: Path) -> None:
    """Leave `kubernetes.aio` alone, and a head that says which version it is of."""
    head = (kubernetes / "__init__.py").read_text()
    for part in sorted(kubernetes.iterdir()):
        if part.name not in KEPT:
            shutil.rmtree(part) if part.is_dir() else part.unlink()
    versions = [line for line in head.splitlines() if line.startswith("__version__")]
    assert len(versions) == 1, "kubernetes does not say its version in one line"
    (kubernetes / "__init__.py").write_text(f"{versions[0]}\n")


if __name__ == "__main__":
    installed = Path(sysconfig.get_path("purelib"))
    strip(installed / "kubernetes")
    for command in OTHER_COMMANDS:
        shutil.rmtree(installed / command)
