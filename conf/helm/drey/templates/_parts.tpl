{{- /* Parts of pods: names and labels, rights, the container of a daemon, volumes. */ -}}

{{- define "drey.name" -}}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{- end }}

{{- define "drey.labels" -}}
app.kubernetes.io/name: drey
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "drey.pod" -}}
serviceAccountName: {{ .Values.serviceAccountName }}
automountServiceAccountToken: false
{{- /* Variables of Services named drey would be read as configuration: DREY_PORT. */}}
enableServiceLinks: false
terminationGracePeriodSeconds: 30
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end }}

{{- define "drey.container" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- with .Values.envFrom }}
envFrom: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "drey.mounts" -}}
{{- include "drey.mountsWith" (dict "root" . "state" "state") }}
{{- end }}

{{- define "drey.mountsWith" -}}
{{- with .root -}}
volumeMounts:
  - {name: config, mountPath: /etc/drey}
  - {name: secrets, mountPath: /run/secrets}
{{- if .Values.tls.enabled }}
  - {name: tls, mountPath: /run/tls}
{{- end }}
  - {name: {{ $.state }}, mountPath: /var/lib/drey}
  - {name: tmp, mountPath: /tmp}
{{- if .Values.persistence.enabled }}
  - {name: data, mountPath: /data}
{{- end }}
{{- end }}
{{- end }}

{{- define "drey.volumes" -}}
- name: config
  configMap: {name: {{ include "drey.name" . }}-config}
- name: secrets
  secret: {secretName: {{ .Values.secretName }}, defaultMode: 0440}
{{- if .Values.tls.enabled }}
- name: tls
  secret: {secretName: {{ .Values.tls.secretName }}, defaultMode: 0440}
{{- end }}
- name: tmp
  emptyDir: {}
{{- if .Values.persistence.enabled }}
- name: data
  persistentVolumeClaim: {claimName: {{ .Values.persistence.existingClaim | default (printf "%s-data" (include "drey.name" .)) }}}
{{- end }}
{{- end }}

{{- /* How one question is asked: a request, or with TLS a process in the pod, since kubelet shows no certificate. */ -}}
{{- define "drey.question" -}}
{{- if .root.Values.tls.enabled -}}
exec: {command: [probe.sh, {{ .daemon }}, {{ .question }}]}
{{- else -}}
httpGet: {path: {{ if eq .question "alive" }}/healthz{{ else }}/readyz{{ end }}, port: {{ .port }}}
{{- end }}
{{- end }}

{{- define "drey.probes" -}}
{{- $alive := include "drey.question" (merge (dict "question" "alive") .) }}
{{- $ready := include "drey.question" (merge (dict "question" "ready") .) -}}
startupProbe:
  {{ $alive }}
  periodSeconds: 2
{{- if .root.Values.tls.enabled }}
  timeoutSeconds: 10
{{- end }}
  failureThreshold: 60
livenessProbe:
  {{ $alive }}
  periodSeconds: 10
  timeoutSeconds: 10
  failureThreshold: 6
readinessProbe:
  {{ $ready }}
  periodSeconds: {{ if .root.Values.tls.enabled }}15{{ else }}5{{ end }}
  timeoutSeconds: {{ if .root.Values.tls.enabled }}10{{ else }}5{{ end }}
{{- end }}

{{- define "drey.placement" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
