"""`python -m kavka_broker` is the command `kavka-broker`."""

from kavka_broker.cli import main

if __name__ == "__main__":
    main()
