"""How pods of a run are let into the S3 store of its tables. Pure.

What is secret stays in its Secret: each pod has it in its environment by reference. So it is in no argument, and in no
setting of Spark's, which its page and its log would show.
"""

from kavka_operator.api.audit import AuditS3
from kavka_operator.platform.kubernetes.objects.names import Document

VOLUME, FILES = "store", "/etc/kavka/store"
CA = "ca.crt"
KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
"""Names of variables, and of the keys of a Secret."""
TRUSTED = "AWS_CA_BUNDLE"


def let_in(store: AuditS3 | None) -> list[Document]:
    """The environment by which a store lets a pod in."""
    if store is None:
        return []
    # A pod that waits for a Secret says nothing of it in its status; a run without its keys says what it lacks.
    secret = {"name": store.credentials_secret.name, "optional": True}
    found: list[Document] = [{"name": key, "valueFrom": {"secretKeyRef": {**secret, "key": key}}} for key in KEYS]
    trusted = {"name": TRUSTED, "value": f"{FILES}/{CA}"}
    return [*found, trusted] if store.ca_secret is not None else found


def mounts(store: AuditS3 | None) -> list[Document]:
    """The mount of the certificate of who signs for a store, if that is named."""
    has_authority = store is not None and store.ca_secret is not None
    return [{"name": VOLUME, "mountPath": FILES, "readOnly": True}] if has_authority else []


def volumes(store: AuditS3 | None) -> list[Document]:
    """The volume with that certificate."""
    if store is None or (ca := store.ca_secret) is None:
        return []
    file = {"items": [{"key": ca.key, "path": CA}]}
    return [{"name": VOLUME, "secret": {"secretName": ca.name, "optional": True, **file}}]
