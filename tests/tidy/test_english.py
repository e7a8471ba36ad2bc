"""Comments and docstrings say what they mean in words that need one reading (CONTRIBUTING, "English").

What can be told by a list of words is held here, below the heads of modules; the other rules are for a reader.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator

import pytest

from tests.tidy.tree import PYTHON, nodes, parsed, relative

#: What these words should have been: again, forever, its own, those that are, except, without success; and the noun.
FOREIGN = re.compile(
    r"\b(anew|for ever|the own|such as are|such as do|but for|in vain|somebody|whoever|he|him|his|she|her)\b",
    re.IGNORECASE,
)
SWEPT = ("broker/", "operator/", "cli/", "audit/", "tools/")
#: Rooms whose docstrings begin with a verb, with the noun that is returned, or with "Whether" where that is a bool.
BEGUN_PLAINLY = (
    *(
        f"broker/kavka_broker/{room}/"
        for room in ("api", "controller", "coordinator", "dispatch", "loop", "membership", "replica", "request")
    ),
    "operator/",
    "cli/",
)
QUESTION = re.compile(r"(What|Who|Where|When|Which|How|Why)\b")
#: They become descriptions of the custom resources, and speak of people.
OF_PEOPLE = ("operator/kavka_operator/api/",)


def said_in(source: str) -> Iterator[tuple[int, str]]:
    """The lines of comments, and of docstrings but for that of the module."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in nodes(parsed(source)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node, clean=False)
            if docstring is not None:
                start = node.body[0].lineno
                yield from enumerate(docstring.splitlines(), start)


def foreign_in(source: str) -> list[int]:
    """The numbers of the lines that say it in a foreign way."""
    return sorted({number for number, line in said_in(source) if FOREIGN.search(line)})


def test_comments_are_plain_english() -> None:
    swept = [path for path in PYTHON if relative(path).startswith(SWEPT) and not relative(path).startswith(OF_PEOPLE)]
    assert swept
    found = {relative(path): lines for path in swept if (lines := foreign_in(path.read_text(encoding="utf-8")))}
    assert not found, "say it as CONTRIBUTING does under English"


def questions_in(source: str) -> list[int]:
    """Lines on which a docstring begins with a question instead of the noun that is returned."""
    return sorted(
        node.body[0].lineno
        for node in nodes(parsed(source))
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and QUESTION.match(ast.get_docstring(node, clean=False) or "")
    )


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    swept = [path for path in PYTHON if relative(path).startswith(BEGUN_PLAINLY)]
    assert len(swept) > len(BEGUN_PLAINLY)
    found = {relative(path): lines for path in swept if (lines := questions_in(path.read_text(encoding="utf-8")))}
    assert not found, "begin with a verb, or with what is returned: CONTRIBUTING, English, 4"


def test_a_docstring_that_begins_with_a_question_is_found() -> None:
    source = 'def f():\n    """What it is."""\n\nclass C:\n    """Where it is."""\n\ndef g():\n    """Whether."""\n'
    assert questions_in(source) == [2, 5]


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("# begins anew\n", [1]),
        ('"""A head may say for ever."""\n', []),
        ('def f():\n    """Whoever waits."""\n', [2]),
        ('class C:\n    """One line,\n    but for these.\n    """\n', [3]),
        ('x = "anew"\n', []),
    ],
)
def test_words_that_read_translated_are_found(source: str, lines: list[int]) -> None:
    assert foreign_in(source) == lines
