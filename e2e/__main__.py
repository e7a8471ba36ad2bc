"""`python -m e2e [PYTEST...]`: images, node, tests, and the node is gone again. `--keep` leaves it there."""

import subprocess
import sys
from pathlib import Path

from e2e import cluster, images

if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--keep"]
    images.build_all()
    try:
        cluster.up()
        line = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "e2e", *words]
        code = subprocess.run(line, cwd=Path(__file__).parents[1], check=False).returncode
    finally:
        if "--keep" not in sys.argv:
            cluster.down()
    sys.exit(code)
