"""`python -m tools.prose [FILE...]`: print what the rules for prose find, in all that is checked or in these files."""

import sys
from pathlib import Path

from tools.prose.counts import checked
from tools.prose.program import findings


def main() -> int:
    """Print a line for each finding; the exit status is 1 where there is one."""
    found = findings([Path(name) for name in sys.argv[1:]] or checked())
    for one in found:
        print(one)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
