"""Secrets on one machine: a directory for each, `secrets/NAME` in that of the cluster, with a file for each key.

It is how Kubernetes shows a Secret to a pod. Only files that a key names are read; one line end behind a text is no
part of it, as editors add one.
"""

from pathlib import Path
from secrets import token_hex

from kavka_operator.platform.external import SecretError
from kavka_operator.platform.local.files import write_whole
from kavka_operator.platform.local.layout import Layout

SECRET_BYTES_MAX = 1024 * 1024  # as on Kubernetes
KEYS_MAX = 64
AUDIT_KEY_BYTES = 32


def read_secret(layout: Layout, name: str) -> dict[str, str]:
    """The texts of a Secret, by their keys. Raises SecretError."""
    directory = layout.secret(name)
    if not directory.is_dir():
        raise SecretError(f'there is no Secret "{name}"; make the directory {directory} with a file for each key')
    try:
        files = sorted(path for path in directory.iterdir() if path.is_file())[:KEYS_MAX]
        return {path.name: text_in(path) for path in files}
    except (OSError, UnicodeDecodeError) as error:
        raise SecretError(f'the Secret "{name}" in {directory} cannot be read: {error}') from error


def keep_audit_key(layout: Layout) -> None:
    """Draw the key that signs the audit trail, where there is none yet. Raises OSError."""
    if not layout.audit_key.exists():
        write_whole(layout.audit_key, f"{token_hex(AUDIT_KEY_BYTES)}\n", mode=0o600)


def text_in(path: Path) -> str:
    """The text of one key, without the line end of an editor. Raises OSError, and UnicodeDecodeError."""
    with path.open("rb") as file:
        return file.read(SECRET_BYTES_MAX).decode().removesuffix("\n").removesuffix("\r")
