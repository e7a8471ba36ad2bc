"""Which quick tests may notice what has changed: those that import it, by however many steps.

    python -m tools.affected        prints them

`make check` runs these, and all of tests/tidy; `make check ALL=1`, `make test` and CI run every one. Changed is what
the branch has beside the main one, committed or not. An import is read from the source, wherever it stands. Who imports
by a name that is made as it runs, as the registry of API keys does, may import anything of its own package, and a test
that starts Python anything at all. What is no module may be read by any test; documents are for tests/tidy.
"""

import os
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
MEMBERS: Final = ("broker", "operator", "cli", "audit")  # what is in them is imported without their name
SHARED: Final = ("tests", "tools", "bench", "e2e")
FROM: Final = re.compile(r"^[ \t]*from ([\w.]+) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
IMPORT: Final = re.compile(r"^[ \t]*import ([^\n#]+)", re.MULTILINE)
BY_NAME: Final = re.compile(r"\b(import_module|iter_modules|walk_packages)\b")
STARTS: Final = re.compile(r"\bsys\.executable\b")
QUICK_TEST: Final = re.compile(r"tests/(unit|property)/.*test_\w+\.py")
FOR_TIDY: Final = ".md"
OF_ALL: Final = ("conftest.py", "__init__.py")  # of the tests: what pytest reads of a directory


def affected(changed: Iterable[str], root: Path = ROOT) -> list[str] | None:
    """The files of quick tests that may notice a change of these files; None where any test may."""
    changed = [path for path in changed if not path.endswith(FOR_TIDY)]
    if any(concerns_all(path) for path in changed):
        return None
    sources = {path: (root / path).read_text(encoding="utf-8") for path in modules(root)}
    imports = {path: set(imported(text)) for path, text in sources.items()}
    by_name = {path for path, text in sources.items() if BY_NAME.search(text)}
    starters = {path for path, text in sources.items() if path.startswith("tests/") and STARTS.search(text)}
    found, reached = set(changed), set(changed)
    while reached:
        names, tops = {module(path) for path in reached}, {top(path) for path in reached}
        reached = {
            path
            for path in sources.keys() - found
            if not names.isdisjoint(imports[path])
            or (path in by_name and (top(path) in tops or (path.startswith("tests/") and tops - {"tests"})))
            or (path in starters and tops - {"tests"})
        }
        found |= reached
    return sorted(path for path in found if QUICK_TEST.fullmatch(path) and path in sources)


def concerns_all(path: str) -> bool:
    """Whether any test may read a file, for all that its path tells."""
    is_module = path.endswith(".py") and path.partition("/")[0] in {*MEMBERS, *SHARED}
    return not is_module or (path.startswith("tests/") and path.endswith(OF_ALL))


def modules(root: Path) -> Iterator[str]:
    """The paths of all modules."""
    for name in (*MEMBERS, *SHARED):
        for path in sorted((root / name).rglob("*.py")):
            yield path.relative_to(root).as_posix()


def module(path: str) -> str:
    """The name by which a file is imported."""
    words = path.removesuffix(".py").removesuffix("/__init__").split("/")
    return ".".join(words[1:] if words[0] in MEMBERS else words)


def top(path: str) -> str:
    """The package, or the directory of tests and tools, that a file is in."""
    return module(path).partition(".")[0]


def imported(text: str) -> Iterator[str]:
    """The names of all modules that a source may import: also what may be a function of one, and the packages above."""
    for package, names in FROM.findall(text):
        yield from above(package)
        for name in re.findall(r"[\w*]+", re.sub(r"#[^\n]*|\bas \w+", "", names)):
            yield f"{package}.{name}"
    for names in IMPORT.findall(text):
        for name in names.split(","):
            yield from above(name.split()[0])


def above(name: str) -> Iterator[str]:
    """A module and the packages that it is in."""
    words = name.split(".")
    for count in range(1, len(words) + 1):
        yield ".".join(words[:count])


def changed_files(root: Path = ROOT) -> list[str] | None:
    """What the branch has beside the main one, and what is not committed; None where there is no main one."""
    bases = (_git(root, "merge-base", "HEAD", name).strip() for name in ("origin/main", "main"))
    if not (base := next(filter(None, bases), "")):
        return None
    changed = _git(root, "diff", "--name-only", "--no-renames", base)
    return [*changed.splitlines(), *_git(root, "ls-files", "--others", "--exclude-standard").splitlines()]


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, check=False, capture_output=True, text=True).stdout


def chosen(look: Callable[[], list[str] | None] = changed_files) -> list[str] | None:
    """The quick tests to run; None where all are to. `look` finds what has changed."""
    if os.environ.get("CI") == "true" or os.environ.get("ALL") or (changed := look()) is None:
        return None
    return affected(changed)


if __name__ == "__main__":
    found = chosen()
    print("all" if found is None else "\n".join(found))
