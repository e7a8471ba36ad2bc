"""A certificate and its key are shown without a file on a disk: the operator's own pod has no place for one."""

import os
import subprocess
from pathlib import Path

import pytest

from kavka_operator.domain.access import Security
from kavka_operator.kafka.client_certificate import present
from kavka_operator.kafka.connection import context_of


@pytest.fixture
def security(tmp_path: Path) -> Security:
    """What a client shows that is its own authority."""
    line = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    line += ["-subj", "/CN=me", "-keyout", "me.key", "-out", "me.crt"]
    subprocess.run(line, cwd=tmp_path, check=True, capture_output=True)
    certificate, key = (tmp_path / "me.crt").read_text(), (tmp_path / "me.key").read_text()
    return Security(is_tls=True, authority=certificate, certificate=certificate, key=key)


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="this machine has no files in memory")
def test_no_directory_is_needed(security: Security, tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))
    context = context_of(security)
    assert context.cert_store_stats()["x509"] == 1
    assert security.certificate
    assert security.key
    present(context, security.certificate, security.key, directory=str(tmp_path / "nowhere"))
    # What other tests have left open may be closed meanwhile, with the garbage.
    assert set(os.listdir("/proc/self/fd")) <= before, "nothing stays open"


def test_a_file_is_gone_where_there_are_none_in_memory(security: Security, tmp_path: Path) -> None:
    before, context = set(tmp_path.iterdir()), context_of(security)
    assert security.certificate
    assert security.key
    present(context, security.certificate, security.key, in_memory=False, directory=str(tmp_path))
    assert set(tmp_path.iterdir()) == before
