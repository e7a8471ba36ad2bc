"""What is generated is what its generator would write now."""

import subprocess
import sys

import pytest

from tests.tidy.tree import ROOT


def drift(module: str) -> str:
    """What the generator would change; empty when nothing."""
    command = [sys.executable, "-m", module, "--check"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return (ran.stdout + ran.stderr).strip() if ran.returncode else ""


def test_compat_is_what_the_handlers_say() -> None:
    assert not drift("tools.compat_table")


def test_configs_are_described_as_they_are_defined() -> None:
    assert not drift("tools.configs_page")


def test_types_of_configs_are_what_the_tables_say() -> None:
    assert not drift("tools.config_types")


def test_resources_are_what_the_models_say() -> None:
    assert not drift("tools.definitions.generate")


def test_the_pictures_show_the_house_as_it_is() -> None:
    assert not drift("tools.pictures")


def test_the_picture_of_the_screen_is_what_it_shows() -> None:
    assert not drift("tools.top_picture")


def test_the_command_is_described_as_it_is_parsed() -> None:
    assert not drift("tools.command_page")


@pytest.mark.java
def test_messages_are_what_the_schemas_of_apache_kafka_say() -> None:
    assert not drift("tools.generate_messages")
