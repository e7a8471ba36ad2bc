from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.operator.local.support import Kavka


@pytest.fixture
def kavka(tmp_path: Path) -> Iterator[Kavka]:
    command = Kavka(tmp_path)
    try:
        yield command
    finally:
        command.end()
