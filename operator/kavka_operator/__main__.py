"""`python -m kavka_operator` is `kavka`."""

from kavka_operator.cli import main

main()
