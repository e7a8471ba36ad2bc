"""The resource files that come with the command, by name: `quickstart`, `quotas`, `secured` ..."""

from pathlib import Path
from typing import Final

DIRECTORY: Final = Path(__file__).parent / "examples"


def names() -> list[str]:
    """Return the names, in order."""
    return sorted(file.stem for file in DIRECTORY.glob("*.yaml"))


def file_of(name: str) -> Path:
    """Return the file of an example. Raises LookupError for a name that is none."""
    if name not in names():
        raise LookupError(f'there is no example "{name}"; write one of {", ".join(names())}')
    return DIRECTORY / f"{name}.yaml"


def text_of(name: str) -> str:
    """Return an example without the line that says where it was copied from. Raises LookupError."""
    return file_of(name).read_text(encoding="utf-8").partition("\n")[2]


def summary_of(name: str) -> str:
    """Return the first sentence of an example's head."""
    head = [line.removeprefix("#").strip() for line in text_of(name).partition("\n\n")[0].splitlines()]
    words = " ".join(line for line in head if line)
    return words.partition(": `")[0].partition(". ")[0].rstrip(".:")
