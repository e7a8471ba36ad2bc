"""Answers by Spark: written beside their place, and taken there as a whole."""

from pathlib import Path
from typing import Any

from kavka_audit.lake.directory import Lake
from kavka_audit.spark.errors import told
from kavka_audit.spark.storage import Ground


def write_frame(lake: Lake, ground: Ground, stage: Path, place: Path, frame: Any) -> None:
    """Write a frame into one file, in its order, whole or not at all. Raises EngineError and LakeError."""
    with told(f"writing {place} by Spark"):
        frame.coalesce(1).write.mode("overwrite").option("compression", "zstd").parquet(ground.address(stage))
    (name,) = ground.names(stage)
    lake.settle(ground.bring(stage / name), place)
    ground.clear(stage)


def stage_frame(ground: Ground, stage: Path, frame: Any) -> list[Path]:
    """Write a frame into files that are there, and in this directory, for a while. Raises EngineError and LakeError."""
    with told(f"writing {stage} by Spark"):
        frame.write.mode("overwrite").option("compression", "zstd").parquet(ground.address(stage))
    return [ground.bring(stage / name) for name in ground.names(stage)]
