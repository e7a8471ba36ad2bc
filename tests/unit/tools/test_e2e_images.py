"""`python -m e2e.images`: which archives are built again, and what the builder leaves behind. Its program is a fake."""

import io
import json
import tarfile
from pathlib import Path

import pytest

from e2e import images


class Builder:
    """Takes down what buildah is told; leaves what `leaves` says in its storage."""

    def __init__(self, storage: Path, leaves: int) -> None:
        self.storage, self.leaves, self.told = storage, leaves, list[str]()

    def __call__(self, command: str, *arguments: str) -> None:
        self.told.append(" ".join((command, *arguments[:1])))
        self.storage.mkdir(parents=True, exist_ok=True)
        (self.storage / "layers").write_bytes(b"x" * self.leaves)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CACHE", "IMAGES", "STORAGE", "RUN_STATE"):
        monkeypatch.setattr(images, name, tmp_path / name)
        (tmp_path / name).mkdir()
    return tmp_path


def build_as(monkeypatch: pytest.MonkeyPatch, places: Path, leaves: int) -> Builder:
    builder = Builder(places / "STORAGE", leaves)
    monkeypatch.setattr(images, "buildah", builder)
    return builder


def test_an_archive_is_made_again_where_it_was_made_from_something_else(places: Path) -> None:
    assert not images.is_made("broker", "new")
    images.stamp_of("broker").write_text("new")
    assert not images.is_made("broker", "new"), "there is no archive"
    (places / "IMAGES" / "broker.tar").touch()
    assert images.is_made("broker", "new")
    assert not images.is_made("broker", "newer")


def test_a_builder_that_has_nothing_to_do_is_not_asked(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = build_as(monkeypatch, places, leaves=0)
    with images.builder([]):
        pass
    assert builder.told == []


def test_layers_go_before_the_first_build_and_after_the_last_also_where_it_fails(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = build_as(monkeypatch, places, leaves=0)
    with pytest.raises(RuntimeError), images.builder(["broker"]):
        builder("build")
        raise RuntimeError
    swept = ["rm --all", "rmi --all"]
    assert builder.told == [*swept, "pull --quiet", "build", *swept]


@pytest.mark.parametrize(
    ("leaves", "is_left"), [(images.STORAGE_BYTES_MAX // 2, True), (images.STORAGE_BYTES_MAX, False)]
)
def test_what_a_builder_does_not_know_of_goes_where_it_is_more_than_the_bound(
    places: Path, monkeypatch: pytest.MonkeyPatch, leaves: int, is_left: bool
) -> None:
    """Such as what another driver has kept: 40 GiB of whole copies, once."""
    build_as(monkeypatch, places, leaves)
    images.sweep()
    assert (places / "STORAGE").exists() is is_left


def archive_of(directory: Path, stem: str, name: str) -> Path:
    archive = directory / f"{stem}.tar"
    manifest = json.dumps([{"RepoTags": [name]}]).encode()
    with tarfile.open(archive, "w") as packed:
        entry = tarfile.TarInfo("manifest.json")
        entry.size = len(manifest)
        packed.addfile(entry, io.BytesIO(manifest))
    return archive


def test_an_image_of_the_dockerfile_has_a_second_name_and_others_have_none(tmp_path: Path) -> None:
    broker = archive_of(tmp_path, "broker", "kavka.local/broker:e2e")
    assert images.second_name(broker) == ("kavka.local/broker:e2e", "kavka.local/broker:e2e-next")
    assert images.second_name(archive_of(tmp_path, "former-broker", "kavka.local/broker:e2e-former")) is None
