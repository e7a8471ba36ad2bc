"""`python -m kavka_cli` is `kavka`."""

from kavka_cli import main

main()
