"""A local cluster is removed with its records, and nothing that Kavka did not make."""

from pathlib import Path

from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.removal import remove


def made(state: Path, cluster_id: str = "one") -> Layout:
    """A cluster of one node that has run, with a topic."""
    layout = Layout.of(state, "default", "local")
    layout.make()
    layout.cluster_id.write_text("one\n")
    volume = layout.data(0) / "data"
    for name in ("__cluster_metadata-0", "flights-0", "flights-1.0a1b-delete"):
        (volume / name).mkdir(parents=True)
        (volume / name / "partition.metadata").write_text("version: 0\n")
        (volume / name / "00000000000000000000.log").write_bytes(b"records")
    (volume / "meta.properties").write_text(f"version=1\ncluster.id={cluster_id}\n")
    for name in (".lock", ".kafka_cleanshutdown", "recovery-point-offset-checkpoint", "cleaner-offset-checkpoint"):
        (volume / name).write_text("")
    return layout


def files(directory: Path) -> set[str]:
    """All that is no directory, by its path."""
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_symlink() or path.is_file()}


def test_all_of_a_cluster_is_removed(tmp_path: Path) -> None:
    layout = made(tmp_path)
    for path in (layout.declared, layout.ephemeral, layout.audit_key, layout.pid(0), layout.lock):
        path.write_text("")
    assert remove(layout) == []
    assert not layout.root.exists()
    assert layout.root.parent.exists()


def test_what_is_not_kavkas_stays_and_is_named(tmp_path: Path) -> None:
    layout, outside = made(tmp_path), tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("mine")
    volume = layout.data(0) / "data"
    (volume / "backup-20261127").mkdir()
    (volume / "backup-20261127" / "dump.sql").write_text("mine")
    (volume / "linked-0").symlink_to(outside)
    (layout.data(0) / "elsewhere").symlink_to(outside)
    (layout.root / "notes.txt").write_text("mine")
    left = {str(path.relative_to(layout.root)) for path in remove(layout)}
    kept = {
        "notes.txt", "data/node-0/elsewhere", "data/node-0/data/linked-0", "data/node-0/data/backup-20261127/dump.sql"
    }  # fmt: skip
    assert left == kept == files(layout.root)
    assert (outside / "precious").read_text() == "mine"


def test_a_log_directory_of_another_cluster_stays_whole(tmp_path: Path) -> None:
    layout = made(tmp_path, cluster_id="another")
    before = files(layout.data(0))
    remove(layout)
    assert files(layout.data(0)) == before


def test_a_link_in_the_place_of_a_directory_is_not_followed(tmp_path: Path) -> None:
    layout, outside = made(tmp_path), tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("mine")
    (layout.root / "certificates").symlink_to(outside)
    assert remove(layout) == []
    assert (outside / "precious").read_text() == "mine"
