{{- define "hedgerow.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "hedgerow.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "hedgerow.labels" -}}
{{ include "hedgerow.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "hedgerow.toml" -}}
{{- if not .Values.tls.allowPlaintext }}
{{- if or (not .Values.tls.httpSecretName) (not .Values.tls.grpcSecretName) }}
{{- fail "tls: expected httpSecretName and grpcSecretName, or allowPlaintext: true where the cluster's network is trusted" }}
{{- end }}
{{- end -}}
http = "0.0.0.0:7410"
grpc = "0.0.0.0:7420"
store = "/var/lib/hedgerow/hedgerow.db"
{{- if .Values.tls.allowPlaintext }}
allow_plaintext_beyond_loopback = true
{{- end }}
{{ .Values.settings }}
{{- if .Values.tls.httpSecretName }}
[http_tls]
certificate = "/etc/hedgerow-tls/http/tls.crt"
key = "/etc/hedgerow-tls/http/tls.key"
{{- end }}
{{- if .Values.tls.grpcSecretName }}
[grpc_tls]
certificate = "/etc/hedgerow-tls/grpc/tls.crt"
key = "/etc/hedgerow-tls/grpc/tls.key"
{{- end }}
{{- end }}
