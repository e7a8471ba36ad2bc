"""How often a rule for prose does not hold yet, by room: the counts only fall.

A rule without a count in a room holds there.
"""

import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tools.prose.program import Finding

ROOT: Final = Path(__file__).parents[2]
ROOMS: Final = ("broker", "operator", "cli", "audit", "tools", "docs/adr", "docs/explanation", "docs/how-to", "docs")
PAGES: Final = "pages of the root"
LEFT_OUT: Final = (
    "broker/kavka_broker/protocol/messages/",  # generated from Apache Kafka's definitions
    "docs/reference/",  # generated from the code, which is checked
    "CHANGELOG.md",  # of what was, and not rewritten
)
COUNTS: Final[dict[str, dict[str, int]]] = {
    "audit": {"Subject": 4, "Told": 13},
    "broker": {"Subject": 157, "Told": 171},
    "cli": {"Subject": 6, "Told": 20},
    "docs": {"Length": 10, "Subject": 27, "Told": 24},
    "docs/adr": {"Length": 44, "Subject": 65, "Told": 29},
    "docs/explanation": {"Length": 118, "Subject": 84, "Told": 62},
    "docs/how-to": {"Length": 23, "Subject": 59, "Told": 25},
    "operator": {"Subject": 82, "Told": 82},
    "pages of the root": {"Length": 8, "Subject": 3, "Told": 2},
    "tools": {"Subject": 4, "Told": 4},
}


def checked() -> list[Path]:
    """Return the code and the documents that are checked."""
    names = subprocess.run(
        ["git", "ls-files", *ROOMS, "*.md"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    return [
        ROOT / name
        for name in sorted(set(names))
        if name.endswith((".py", ".md")) and not name.startswith(LEFT_OUT) and room_of(name)
    ]


def room_of(name: str) -> str:
    """Return the room in which a file is counted; nothing where it is not checked."""
    found = next((room for room in ROOMS if name.startswith(f"{room}/")), "")
    return found or (PAGES if "/" not in name else "")


def counted(findings: Iterable[Finding]) -> dict[str, dict[str, int]]:
    """Return how often each rule does not hold, by room."""
    counts: dict[str, Counter[str]] = {}
    for finding in findings:
        name = Path(finding.file).resolve().relative_to(ROOT).as_posix()
        counts.setdefault(room_of(name), Counter())[finding.rule] += 1
    return {room: dict(rules) for room, rules in counts.items()}
