"""What the Helm chart holds of the models: the definitions of the resources, and the settings that Kafka knows.

Helm never upgrades what lies in a chart's `crds/`. A template is upgraded with its release, and can say that an
uninstallation leaves it: with a definition every resource of its kind would go.

Unknown settings are no error of the definition: a rule that names one costs a hundred times what the API server allows
where a map has any keys. A ValidatingAdmissionPolicy may, and warns.
"""

from typing import Any

import yaml

from kavka_broker.core.config.broker import KEYS as BROKER_KEYS
from kavka_broker.core.config.topic_table import TOPIC_KEYS
from kavka_operator.api.resource import Resource
from kavka_operator.api.settings import OPEN_PREFIXES
from tools.definitions.crd import definition

TEMPLATE = """\
{{{{- if .Values.crds.enabled }}}}
apiVersion: {apiVersion}
kind: {kind}
metadata:
  name: {name}
  labels:
    {{{{- include "kavka.labels" . | nindent 4 }}}}
  {{{{- if .Values.crds.keep }}}}
  annotations:
    helm.sh/resource-policy: keep
  {{{{- end }}}}
{spec}{{{{- end }}}}
"""


def text_of(document: dict[str, Any]) -> str:
    """A document as YAML, as every generated file has it."""
    return yaml.safe_dump(document, sort_keys=False, width=110, allow_unicode=True)


def definition_template(kind: type[Resource]) -> str:
    """The definition of a kind as a template."""
    whole = definition(kind)
    spec = text_of({"spec": whole["spec"]})
    assert "{{" not in spec, f"{kind.kind_name}: Helm would take a part of this definition for its own"
    return TEMPLATE.format(
        apiVersion=whole["apiVersion"], kind=whole["kind"], name=whole["metadata"]["name"], spec=spec
    )


def settings() -> str:
    """The names of Kafka's settings by owner, and how names begin that nobody can list."""
    return text_of({"openPrefixes": [*OPEN_PREFIXES], "topic": sorted(TOPIC_KEYS), "broker": sorted(BROKER_KEYS)})
