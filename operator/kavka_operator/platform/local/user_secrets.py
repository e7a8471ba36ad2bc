"""Secrets of KafkaUsers on one machine: directories as of any Secret (`secrets`), made and changed by the operator.

A hidden file names the KafkaUser that a Secret was made for. Its files are this user's alone (0600), and the password
is written last, so that it never stands beside what belongs to another.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from errno import EEXIST, ENOTEMPTY
from pathlib import Path

from kavka_operator.domain.observed import NoSecret
from kavka_operator.domain.user_secret import KEYS, PASSWORD
from kavka_operator.loop.passwords import Place, Stored, Written, place_of
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.secrets import KEYS_MAX, text_in

OWNER = ".kafka-user"
OURS_ALONE = 0o600


@dataclass(frozen=True, slots=True)
class LocalSecrets:
    """The `SecretStore` of a local cluster."""

    layout: Layout

    outlives = True

    def words(self, place: Place) -> str:
        """The directory of a Secret."""
        return str(self._directory(place))

    def location(self, place: Place) -> str:
        """The directory of a Secret."""
        return str(self._directory(place))

    def read(self, places: Sequence[Place]) -> Mapping[Place, Stored | NoSecret]:
        """These Secrets."""
        return {place: self._read(place) for place in places}

    def write(self, wanted: Sequence[Written]) -> list[str]:
        """Write Secrets; of each the words for why it could not be done."""
        return [self._write(written) for written in wanted]

    def remove(self, place: Place) -> None:
        """Remove a Secret, the password first; files that are not of a Secret stay, and a symbolic link goes alone.
        Raises OSError.
        """
        directory = self._directory(place)
        if directory.is_symlink():
            directory.unlink()
            return
        for name in (PASSWORD, *(key for key in KEYS if key != PASSWORD), OWNER):
            (directory / f".{name}.new").unlink(missing_ok=True)
            (directory / name).unlink(missing_ok=True)
        try:
            directory.rmdir()
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno not in (ENOTEMPTY, EEXIST):
                raise

    def _read(self, place: Place) -> Stored | NoSecret:
        directory = self._directory(place)
        if not directory.is_dir():
            return NoSecret()
        try:
            files = sorted(path for path in directory.iterdir() if path.is_file())[:KEYS_MAX]
            texts = {path.name: text_in(path) for path in files}
            stamps = [(path.name, path.stat().st_ino, path.stat().st_mtime_ns) for path in files]
        except (OSError, UnicodeDecodeError) as error:
            return NoSecret("SecretUnreadable", f"{directory} cannot be read: {error}")
        owner = texts.pop(OWNER, None)
        if not texts and owner is None:
            return NoSecret()
        return Stored(texts, hashlib.sha256(repr(stamps).encode()).hexdigest()[:32], owner)

    def _write(self, written: Written) -> str:
        directory = self._directory(place_of(written.user))
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            _put(directory / OWNER, written.user.name)
            for name, text in sorted(written.texts.items(), key=lambda entry: entry[0] == PASSWORD):
                _put(directory / name, text)
        except OSError as error:
            return str(error)
        return ""

    def _directory(self, place: Place) -> Path:
        namespace, name = place
        return self.layout.secret(name if namespace == self.layout.namespace else f"{name}@{namespace}")


def _put(path: Path, text: str) -> None:
    """Replace a file in one step, which nobody else may read at any moment. Raises OSError."""
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, OURS_ALONE)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    draft.replace(path)
