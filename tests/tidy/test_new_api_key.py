"""An API key is added in five steps: those of CONTRIBUTING.md are taken here, for a key that nobody serves.

The handler is the one that stands there. A node of its own process finds it in a scratch folder, serves it at once, and
COMPAT.md would have it.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.tidy.tree import ROOT

SECTION: Final = re.compile(r"^## Add an API key in five steps\n(.*?)^## ", re.DOTALL | re.MULTILINE)
PLACE: Final = re.compile(r"`((?:broker|tests)/[\w/]+)`")
HANDLER: Final = re.compile(r"A whole handler, `(\w+\.py)`.*?```python\n(.*?)```", re.DOTALL)
SECONDS_MAX: Final = 120

# What a newcomer does behind step 2, with the folder of the new handler as argument.
STEPS: Final = """
import asyncio, sys, tempfile
from pathlib import Path
import kavka_broker.api
kavka_broker.api.__path__.append(sys.argv[1])
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse
from kavka_broker.protocol.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from kavka_broker.protocol.messages.streams_group_describe_response import StreamsGroupDescribeResponse
from tests.support.in_process import running
from tools.compat_table import render

async def main():
    with tempfile.TemporaryDirectory() as scratch:
        async with running(Path(scratch)) as inside:
            client = await inside.connect()
            known = await client.call(ApiVersionsRequest("test", "1"), ApiVersionsResponse, 4)
            print([(one.min_version, one.max_version) for one in known.api_keys if one.api_key == 89])
            answer = await client.call(StreamsGroupDescribeRequest(["a", "b"]), StreamsGroupDescribeResponse, 0)
            print([(one.group_id, one.error_code) for one in answer.groups])
            many = StreamsGroupDescribeRequest([str(number) for number in range(1_000)])
            answer = await client.call(many, StreamsGroupDescribeResponse, 0)
            print(len(answer.groups))
    print(*[line for line in render().splitlines() if line.startswith("| 89 |")])

asyncio.run(main())
"""


def section() -> str:
    found = SECTION.search((ROOT / "CONTRIBUTING.md").read_text())
    assert found is not None
    return found[1]


def test_there_are_five_steps_and_their_places_exist() -> None:
    assert re.findall(r"^(\d)\. \*\*", section(), re.MULTILINE) == list("12345")
    places = PLACE.findall(section())
    assert len(places) == 5
    assert [place for place in places if not (ROOT / place).is_dir()] == []


def test_the_handler_of_the_document_is_served(tmp_path: Path) -> None:
    found = HANDLER.search(section())
    assert found is not None
    (tmp_path / found[1]).write_text(found[2])
    ran = subprocess.run(
        [sys.executable, "-c", STEPS, str(tmp_path)],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert ran.returncode == 0, ran.stderr
    versions, answers, count, row = ran.stdout.splitlines()
    assert (versions, answers, count) == ("[(0, 0)]", "[('a', 69), ('b', 69)]", "1000")
    assert re.match(r"\| 89 \| StreamsGroupDescribe \| 0 \| 0 \| = \| \[a89_streams_group_describe\]", row)


def test_the_handler_of_the_document_is_as_the_linters_want_it(tmp_path: Path) -> None:
    found = HANDLER.search(section())
    assert found is not None
    (tmp_path / found[1]).write_text(found[2])
    for command in (["check", "--quiet"], ["format", "--check", "--quiet"]):
        ran = subprocess.run(
            [Path(sys.executable).parent / "ruff", *command, f"--config={ROOT / 'pyproject.toml'}", str(tmp_path)],
            check=False,
            capture_output=True,
            text=True,
        )
        assert ran.returncode == 0, ran.stdout
