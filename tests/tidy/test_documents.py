"""The documents say what is there: links lead somewhere, commands are those that tests run, decisions are numbered."""

import re
import shlex
from pathlib import Path

import pytest

from kavka_cli.app import parser
from tests.tidy.tree import MARKDOWN, PYTHON, ROOT, relative
from tools.ktool import CLASSES

ANCHORED = re.compile(r"\[[^\]]*\]\(([^)#\s]*)#([^)]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)

# The commands of the README, and what runs each of them.
SHOWN = {
    "git clone": "the reader",
    "make demo": "tests/operator, and the demo itself exits 1 on any mismatch",
    ".venv/bin/kavka": "tests/operator",
    "helm upgrade": "e2e/test_readme.py",
    "kubectl": "e2e/test_readme.py",
    "make check": "this",
    "make test": ".ci/run",
}


@pytest.mark.parametrize("page", MARKDOWN, ids=relative)
def test_links_lead_somewhere(page: Path) -> None:
    targets = [link for link in LINK.findall(page.read_text()) if not re.match(r"[a-z]+:", link)]
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing


@pytest.mark.parametrize("page", MARKDOWN, ids=relative)
def test_links_to_a_heading_find_it(page: Path) -> None:
    """A renamed heading takes its links along."""
    anchored = [(target, anchor) for target, anchor in ANCHORED.findall(page.read_text()) if "://" not in target]
    missing = [
        f"{target}#{anchor}"
        for target, anchor in anchored
        if anchor not in anchors((page.parent / target if target else page).read_text())
    ]
    assert not missing


def anchors(text: str) -> set[str]:
    """The anchors that GitHub makes of headings."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text)}


def test_a_question_is_the_title_of_its_page_and_in_the_index() -> None:
    """Users look for their own words: each page that answers is listed in docs/README.md by its title."""
    pages = [page for folder in ("questions", "how-to") for page in sorted((ROOT / "docs" / folder).glob("*.md"))]
    index = (ROOT / "docs/README.md").read_text()
    assert pages
    for page in pages:
        title = page.read_text().splitlines()[0].removeprefix("# ")
        assert title.endswith("?"), f"{relative(page)} is titled {title!r}, which is no question"
        assert f"[{title}]({relative(page).removeprefix('docs/')})" in index, f"{title!r} is not in docs/README.md"


def test_every_document_is_on_the_map() -> None:
    """What docs/README.md or a list it names does not lead to, nobody finds."""
    maps = "\n".join(page.read_text() for page in (ROOT / "docs").rglob("README.md"))
    pages = [page for page in MARKDOWN if relative(page).startswith("docs/") and page.name != "README.md"]
    lost = [relative(page) for page in pages if page.name not in maps and f"({page.parent.name})" not in maps]
    assert not lost


def test_decisions_are_numbered_without_gaps_and_say_how_they_are_confirmed() -> None:
    pages = sorted(page for page in (ROOT / "docs/adr").glob("*.md") if page.name != "README.md")
    numbers = [int(page.name.split("-")[0]) for page in pages]
    assert numbers == list(range(1, len(pages) + 1))
    for page in pages:
        text = page.read_text()
        assert text.startswith(f"# {page.name[:4]}: "), page.name
        for section in ("Status: ", "## Context", "## Decision", "## Consequences", "## Confirmation"):
            assert section in text, f"{page.name} has no {section!r}"


def test_the_targets_of_make_that_documents_name_are_there() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in MARKDOWN:
        for target in re.findall(r"(?:^|`)make ([a-z0-9-]+)", page.read_text(), re.MULTILINE):
            assert target in targets, f"{relative(page)}: make {target}"


def test_the_tree_that_architecture_names_is_there() -> None:
    table = (ROOT / "ARCHITECTURE.md").read_text().partition("## To change X")[2]
    paths = re.findall(r"`((?:broker|operator|tests|tools|requirements|crds)/[^`]*)`", table)
    assert paths
    missing = [path for path in paths if not any(ROOT.glob(path.rstrip("/").replace("NN", "[0-9][0-9]")))]
    assert not missing


def test_the_files_that_the_map_of_rooms_names_are_there() -> None:
    (rooms,) = re.findall(
        r"^## Rooms\n+```\n(.*?)```", (ROOT / "ARCHITECTURE.md").read_text(), re.DOTALL | re.MULTILINE
    )
    named = set(re.findall(r"\b([a-z]\w*\.py)\b", rooms))
    assert named
    assert not named - {path.name for path in PYTHON}


def test_the_places_that_the_glossary_names_are_there() -> None:
    """A name that moves takes its line along."""
    rows = (ROOT / "docs/reference/glossary.md").read_text().splitlines()
    places = [row.split("|")[-2] for row in rows if row.startswith("| ")]
    paths = [path for place in places for path in re.findall(r"`([^`]+)`", place)]
    assert len(paths) > len(rows) / 2
    missing = [
        path for path in paths if not any((ROOT / top / path).exists() for top in ("broker/kavka_broker", "operator"))
    ]
    assert not missing


def test_the_readme_shows_only_commands_that_are_run() -> None:
    blocks = BLOCK.findall((ROOT / "README.md").read_text())
    commands = [line.strip() for block in blocks for line in block.splitlines() if line.strip()]
    assert commands
    unknown = [line for line in commands if not line.startswith((*SHOWN, "cd ", "#"))]
    assert not unknown, "show what a test runs, or run what is shown"


@pytest.mark.parametrize("page", MARKDOWN, ids=relative)
def test_what_a_page_has_one_type_is_a_command(page: Path) -> None:
    """Each `kavka ...` that a block shows has the commands and options of the program."""
    shown = re.findall(r"^\.venv/bin/kavka (.+)", "".join(BLOCK.findall(page.read_text())), re.MULTILINE)
    assert not [line for line in shown if not is_command(line)]


@pytest.mark.parametrize("page", MARKDOWN, ids=relative)
def test_the_tools_of_kafka_that_a_page_has_one_run_are_there(page: Path) -> None:
    shown = re.findall(r"-m tools\.ktool ([a-z-]+)", "".join(BLOCK.findall(page.read_text())))
    assert not set(shown) - CLASSES.keys()


def is_command(line: str) -> bool:
    """Whether the program takes these words."""
    try:
        parser().parse_args(shlex.split(line, comments=True))
    except SystemExit as refusal:
        return not refusal.code
    return True


def test_the_tests_that_documents_name_are_there() -> None:
    """A claim that names its test is worth as much as the test."""
    functions = "\n".join(path.read_text() for path in PYTHON if relative(path).startswith("tests/"))
    for page in MARKDOWN:
        text = page.read_text()
        for path in re.findall(r"`(tests/[^`\s:]*)", text):
            assert (ROOT / path).exists(), f"{relative(page)}: {path}"
        for name in re.findall(r"`(test_\w+)`", text):
            assert f"def {name}(" in functions, f"{relative(page)}: {name}"
