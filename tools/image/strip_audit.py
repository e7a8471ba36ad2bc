"""Takes the commands out of the Python that runs it that the image of the analytics has no libraries for."""

import shutil
import sysconfig
from pathlib import Path

OTHER_COMMANDS = ("kavka_demo", "kavka_pytest", "kavka_top")


def strip(installed: Path) -> None:
    """Take the other commands out."""
    for command in OTHER_COMMANDS:
        shutil.rmtree(installed / command)


if __name__ == "__main__":
    strip(Path(sysconfig.get_path("purelib")))
