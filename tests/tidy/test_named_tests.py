"""Documents that name tests name tests that there are."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`((?:tests|e2e)/[\w/]+\.py)(?:::(\w+))?`")


def test_every_test_that_a_document_names_is_there() -> None:
    """A claim is worth what its proof is: a test that was renamed or has gone proves nothing any more."""
    lacking = []
    for page in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]):
        for path, function in NAMED.findall(page.read_text()):
            if not (ROOT / path).exists() or (function and function not in functions_of(path)):
                lacking.append(f"{page.relative_to(ROOT)} names {path}::{function}")
    assert not lacking


def functions_of(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
