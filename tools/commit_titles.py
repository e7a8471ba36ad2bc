"""Commit titles: at most 72 characters that say what changes for a reader.

    python -m tools.commit_titles          the commits of this branch that are not on main yet
    python -m tools.commit_titles FILE     the message in a file: for a hook, before it becomes a commit

What is on main stays as it is. Length and form are judged here; what a title says, its author has to judge.
"""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
TITLE_MAX: Final = 72
WORDS_MIN: Final = 3
MAINS: Final = ("origin/main", "main")
UNFINISHED: Final = ("fixup!", "squash!", "amend!", "wip")


def problems(title: str) -> Iterator[str]:
    """What is wrong with a title."""
    if len(title) > TITLE_MAX:
        yield f"has {len(title)} characters; {TITLE_MAX} at most, the rest belongs into the body"
    if len(title.split()) < WORDS_MIN:
        yield "says what changes for a reader, in a sentence"
    if title.lower().startswith(UNFINISHED):
        yield "is not finished: squash it"
    if title.endswith("."):
        yield "ends without a full stop"


def title_of(message: str) -> str:
    """The first line of a message that is no comment."""
    return next((line.strip() for line in message.splitlines() if line.strip() and not line.startswith("#")), "")


def git(root: Path, *arguments: str) -> str | None:
    """What git says; None where it refuses, or is not there."""
    try:
        ran = subprocess.run(["git", *arguments], cwd=root, check=False, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return ran.stdout if ran.returncode == 0 else None


def new_titles(root: Path = ROOT) -> list[str]:
    """The titles of what is here and not on main, the newest first; none where there is no main to compare with."""
    for main in MAINS:
        titles = git(root, "log", "--no-merges", "--format=%s", f"{main}..HEAD")
        if titles is not None:
            return titles.splitlines()
    return []


def main(arguments: Sequence[str]) -> int:
    """The exit status."""
    titles = [title_of(Path(name).read_text(encoding="utf-8")) for name in arguments] or new_titles()
    wrong = [f"{title}\n    {problem}" for title in titles for problem in problems(title)]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
