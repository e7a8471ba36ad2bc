"""The picture of the whole system, drawn by hand: its names are ours, and it has colours by day and by night."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import yaml

from kavka_broker.core.metadata.image.topic_names import AUDIT_TOPIC
from tests.tidy.tree import ROOT

PICTURE = ROOT / "docs" / "pictures" / "system.svg"
TAG = "{http://www.w3.org/2000/svg}"


def words() -> str:
    return " ".join(" ".join(text.itertext()) for text in ET.parse(PICTURE).iter(f"{TAG}text"))


def test_it_names_every_kind_of_resource_and_the_topic_of_the_audit() -> None:
    kinds = [yaml.safe_load(Path(file).read_text())["spec"]["names"]["kind"] for file in (ROOT / "crds").glob("*.yaml")]
    assert kinds
    assert [name for name in [*kinds, AUDIT_TOPIC] if name not in words()] == []


def test_every_colour_by_day_has_one_by_night() -> None:
    style = next(ET.parse(PICTURE).iter(f"{TAG}style")).text or ""
    day, night = style.split("@media (prefers-color-scheme: dark)")
    coloured = [set(re.findall(r"([.\w-]+) \{[^}]*(?:fill|stroke): #", part)) for part in (day, night)]
    assert coloured[0]
    assert coloured[0] == coloured[1]
