"""Names of subjects that chance has drawn, beside Java's own `X500Principal.getName()`."""

from pathlib import Path
from random import Random

import pytest

from kavka_broker.core.authentication.distinguished_names import distinguished_name
from tests.support.programs import run
from tests.support.subjects import draw_subject

pytestmark = pytest.mark.java

SUBJECTS = 5_000


def test_names_of_drawn_subjects_are_those_of_java() -> None:
    chance = Random(2253)
    subjects = [draw_subject(chance) for _ in range(SUBJECTS)]
    lines = "".join(f"{subject.hex()}\n" for subject in subjects)
    said = run(["java", str(Path(__file__).with_name("NamesOfSubjects.java"))], stdin=lines).splitlines()
    assert [distinguished_name(subject) for subject in subjects] == [bytes.fromhex(line).decode() for line in said]
