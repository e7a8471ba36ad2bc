"""A command of ours, in the process of the test: one of its own would spend most of its time on imports."""

import traceback
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper


def run_here(main: Callable[[Sequence[str]], object], *words: str) -> tuple[int, str]:
    """Exit code of a command, and all it said: what it writes to stdout, then what to stderr."""
    said = BytesIO(), BytesIO()
    output, errors = (TextIOWrapper(stream, encoding="utf-8", write_through=True) for stream in said)
    code: object = 0
    with output, errors:
        with redirect_stdout(output), redirect_stderr(errors):
            try:
                main(words)
            except SystemExit as ended:
                code = ended.code
            except Exception:  # noqa: BLE001 - what Python does with an error that a program does not handle
                traceback.print_exc()
                code = 1
        assert isinstance(code, int), code
        return code, b"".join(stream.getvalue() for stream in said).decode()
