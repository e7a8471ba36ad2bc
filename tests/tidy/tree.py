"""The files of the project that the tidy tests look at: those that git knows, or would take."""

import ast
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
GENERATED = ("broker/kavka_broker/protocol/messages/",)


@cache
def files() -> tuple[Path, ...]:
    """Every file of the project, without what .gitignore names."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    return tuple(path for name in sorted(set(names)) if (path := ROOT / name).is_file())


def relative(path: Path) -> str:
    """The path as it is written in the project."""
    return path.relative_to(ROOT).as_posix()


@cache
def parsed(source: str) -> ast.Module:
    """The tree of a file's text, which nobody may change: each is parsed once for all tests."""
    return ast.parse(source)


@cache
def nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """All nodes of a file's tree, as `ast.walk` finds them: each tree is walked once for all tests."""
    return tuple(ast.walk(tree))


PYTHON = tuple(path for path in files() if path.suffix == ".py" and not relative(path).startswith(GENERATED))
MARKDOWN = tuple(path for path in files() if path.suffix == ".md")
