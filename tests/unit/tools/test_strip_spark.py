"""What the image with Spark is made of: what is left of pyspark, and a Java that Spark can start."""

import subprocess
from pathlib import Path

import pytest

from tools.image.strip_spark import ASKED_FOR, put_java, strip

GOES = ("examples/a.py", "jars/rocksdbjni-9.jar")
STAYS = ("jars/c.jar", "testing/d.py")


def made(directory: Path, *names: str) -> None:
    for name in names:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).touch()


def test_what_no_run_needs_goes_and_the_rest_stays(tmp_path: Path) -> None:
    made(tmp_path, *GOES, *STAYS)
    strip(tmp_path)
    left = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file())
    assert left == sorted(STAYS)


def test_a_part_that_has_another_name_now_is_noticed(tmp_path: Path) -> None:
    made(tmp_path, *GOES[:1], *STAYS)
    with pytest.raises(AssertionError, match="rocksdbjni"):
        strip(tmp_path)


def test_java_is_told_all_words_except_that_of_the_module_that_it_does_not_have(tmp_path: Path) -> None:
    java = tmp_path / "real"
    java.write_text('#!/bin/sh\nfor word; do echo "<$word>"; done\n')
    java.chmod(0o755)
    put_java(tmp_path / "java", java)
    words = ["-Xmx1g", ASKED_FOR, "-Dtext=of two words", "", "*", ASKED_FOR, "Main"]
    said = subprocess.run([tmp_path / "java/bin/java", *words], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["<-Xmx1g>", "<-Dtext=of two words>", "<>", "<*>", "<Main>"]
