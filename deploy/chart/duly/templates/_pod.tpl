{{- define "duly.labels" -}}
app.kubernetes.io/name: duly
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "duly.meta" -}}
{{ include "duly.labels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- /* What both kinds of pods have in common. */ -}}
{{- define "duly.pod" -}}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  seccompProfile: { type: RuntimeDefault }
volumes:
  - name: config
    configMap: { name: {{ .Release.Name }} }
  - name: tmp
    emptyDir: {}
{{- end }}

{{- define "duly.container" -}}
name: duly
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
env:
  - name: DULY_REDIS_URL
    valueFrom: { secretKeyRef: { name: {{ .Values.redis.secret | quote }}, key: {{ .Values.redis.key | quote }} } }
  - name: DULY_NAME
    valueFrom: { fieldRef: { fieldPath: metadata.name } }
  {{- if .Values.token.secret }}
  - name: DULY_TOKEN
    valueFrom: { secretKeyRef: { name: {{ .Values.token.secret | quote }}, key: {{ .Values.token.key | quote }} } }
  {{- end }}
  {{- with .Values.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
volumeMounts:
  - { name: config, mountPath: /etc/duly, readOnly: true }
  - { name: tmp, mountPath: /tmp }
resources:
  {{- toYaml .Values.resources | nindent 2 }}
{{- end }}
