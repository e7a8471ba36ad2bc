"""Our certificate and its key for a TLS context, which the standard library reads from a file alone.

Where the machine has files in memory, as Linux does, it is one of those: a key then never comes to a disk, and nothing
needs a directory for temporary files, which the operator's own pod does not have. Elsewhere it is a file that this user
alone may read, and that is deleted right away.
"""

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kavka_operator.domain.access import no_passphrase

IN_MEMORY: Final = hasattr(os, "memfd_create")


def present(
    context: ssl.SSLContext,
    certificate: str,
    key: str,
    *,
    in_memory: bool = IN_MEMORY,
    directory: str | None = None,
) -> None:
    """Let the context show a certificate, from a file in memory or, for a moment, in `directory`. Raises ssl.SSLError,
    and ValueError where the key is encrypted.
    """
    content = f"{certificate}\n{key}\n".encode()
    with _file_of(content, in_memory=in_memory, directory=directory) as path:
        context.load_cert_chain(path, password=no_passphrase)


@contextmanager
def _file_of(content: bytes, *, in_memory: bool, directory: str | None) -> Iterator[str]:
    """The path of a file with this content, for as long as it is wanted."""
    handle, path = (os.memfd_create("certificate"), "") if in_memory else tempfile.mkstemp(dir=directory)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            yield path or f"/proc/self/fd/{handle}"
    finally:
        if path:
            os.unlink(path)
