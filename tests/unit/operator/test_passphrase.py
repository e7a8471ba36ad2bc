"""A private key that is encrypted is refused at once, and nobody is asked for its passphrase."""

import subprocess
from pathlib import Path

import pytest

from kavka_cli.kubernetes.api_server import KubernetesError, connection
from kavka_cli.kubernetes.kubeconfig import Access
from kavka_operator.domain.access import Security
from kavka_operator.kafka.admin import BarredError
from kavka_operator.kafka.connection import connected

WORDS = "the private key is encrypted; give it without a passphrase"


@pytest.fixture
def pair(tmp_path: Path) -> tuple[str, str]:
    """A certificate, and its key under a passphrase."""
    line = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    line += ["-subj", "/CN=me", "-passout", "pass:secret", "-keyout", "me.key", "-out", "me.crt"]
    subprocess.run(line, cwd=tmp_path, check=True, capture_output=True)
    return (tmp_path / "me.crt").read_text(), (tmp_path / "me.key").read_text()


def test_a_key_of_a_kubeconfig_that_needs_a_passphrase_is_refused(pair: tuple[str, str]) -> None:
    certificate, key = pair
    with pytest.raises(KubernetesError, match=WORDS):
        connection(Access("prod", "https://127.0.0.1:1", certificate=certificate, key=key))


def test_a_key_with_a_passphrase_in_an_external_secret_is_refused(pair: tuple[str, str]) -> None:
    certificate, key = pair
    with pytest.raises(BarredError, match=WORDS) as refused:
        connected("127.0.0.1:1", Security(is_tls=True, certificate=certificate, key=key))
    assert refused.value.reason == "BadSecret"
