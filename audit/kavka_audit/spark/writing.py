"""Answers by Spark: written beside their place, and taken there as a whole."""

import shutil
from pathlib import Path
from typing import Any

from kavka_audit.lake.directory import PART, Lake
from kavka_audit.spark.faults import told


def write_frame(lake: Lake, place: Path, frame: Any) -> None:
    """Write a frame into one file, in its order, whole or not at all. Raises EngineError."""
    stage = place.with_name(place.name + PART)
    with told(f"writing {place} by Spark"):
        frame.coalesce(1).write.mode("overwrite").option("compression", "zstd").parquet(address(stage))
    (file,) = staged_files(stage)
    lake.settle(file, place)
    shutil.rmtree(stage)


def stage_frame(stage: Path, frame: Any) -> list[Path]:
    """Write a frame into files of a directory that is there for a while. Raises EngineError."""
    with told(f"writing {stage} by Spark"):
        frame.write.mode("overwrite").option("compression", "zstd").parquet(address(stage))
    return staged_files(stage)


def address(path: Path | str) -> str:
    """Return how Spark names a file of this machine, whatever file system is its default."""
    return f"file://{Path(path).absolute()}"


def staged_files(stage: Path) -> list[Path]:
    """Return the files that a job has written."""
    return [file for file in sorted(stage.glob("*.parquet")) if not file.name.startswith(("_", "."))]
