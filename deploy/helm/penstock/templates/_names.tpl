{{- define "penstock.name" -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "penstock.labels" -}}
app.kubernetes.io/name: penstock
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "penstock.selector" -}}
app.kubernetes.io/name: penstock
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "penstock.secret" -}}
{{ .Values.existingSecret | default (include "penstock.name" .) }}
{{- end }}

{{- define "penstock.account" -}}
{{ .Values.serviceAccount.name | default (include "penstock.name" .) }}
{{- end }}

{{- define "penstock.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "penstock.environment" -}}
envFrom:
  - secretRef:
      name: {{ include "penstock.secret" . }}
env:
  - name: PENSTOCK_CONFIG
    value: /etc/penstock/config.toml
{{- range $name, $value := .Values.environment }}
{{- if $value }}
  - name: {{ $name }}
    value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- if .Values.traces.endpoint }}
  - name: OTEL_EXPORTER_OTLP_ENDPOINT
    value: {{ .Values.traces.endpoint | quote }}
{{- end }}
{{- end }}

{{- define "penstock.container" -}}
image: {{ include "penstock.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
volumeMounts:
  - name: config
    mountPath: /etc/penstock
    readOnly: true
  - name: data
    mountPath: /var/lib/penstock
  - name: tmp
    mountPath: /tmp
{{- end }}

{{- define "penstock.pod" -}}
serviceAccountName: {{ include "penstock.account" . }}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile:
    type: RuntimeDefault
volumes:
  - name: config
    configMap:
      name: {{ include "penstock.name" . }}
  # Outlives a crash of the process, which reads there afterwards what chat used; not the pod.
  - name: data
    emptyDir: {}
  - name: tmp
    emptyDir: {}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
