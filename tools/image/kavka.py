"""The command `kavka` as a file, which is what Spark's own operators are told to run."""

from kavka_cli import main

if __name__ == "__main__":
    main()
