{{- define "kavka.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "kavka.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "kavka.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "kavka.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The name of what is there once in a whole Kubernetes: releases of one name in two namespaces do not meet. */}}
{{- define "kavka.wideName" -}}
{{- printf "%s-%s" .Release.Namespace (include "kavka.fullname" .) -}}
{{- end -}}

{{- define "kavka.selectorLabels" -}}
app.kubernetes.io/name: {{ include "kavka.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end -}}

{{- define "kavka.labels" -}}
{{ include "kavka.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "kavka.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "kavka.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* An image by its digest, or else by its tag. Called with the chart's version for images without either. */}}
{{- define "kavka.image" -}}
{{- if .image.digest -}}
{{- printf "%s@%s" .image.repository .image.digest -}}
{{- else -}}
{{- printf "%s:%s" .image.repository (default .version .image.tag) -}}
{{- end -}}
{{- end -}}

{{/* One role, of the kind that is asked for, and the binding of the operator to it. */}}
{{- define "kavka.role" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "kavka.labels" .root | nindent 4 }}
rules:
{{ toYaml .rules }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "kavka.labels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .name }}
subjects:
- kind: ServiceAccount
  name: {{ include "kavka.serviceAccountName" .root }}
  namespace: {{ .root.Release.Namespace }}
{{- end -}}

{{/* Whether the page for people can be reached from outside of its pod. */}}
{{- define "kavka.openConsole" -}}
{{- if .Values.console.enabled }}
{{- if eq (int .Values.console.port) (int .Values.metrics.port) }}
{{- fail (printf "console.port and metrics.port are both %v; write another for one of them" .Values.console.port) }}
{{- end }}
{{- if not (or (hasPrefix "127." .Values.console.host) (has .Values.console.host (list "::1" "localhost"))) }}true{{ end }}
{{- end }}
{{- end }}
