"""`python -m tools.kube [PROGRAM...]`: build the programs, or all that the tests need, and print where they are."""

import sys

from tools.kube.programs import FOR_TESTS, program

if __name__ == "__main__":
    for name in sys.argv[1:] or FOR_TESTS:
        print(program(name))
