{{- define "stateyard.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "stateyard.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "stateyard.labels" -}}
{{ include "stateyard.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "stateyard.image" -}}
{{ printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) | quote }}
{{- end -}}

{{- define "stateyard.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "stateyard.fullname" .) .Values.serviceAccount.name }}
{{- else -}}
{{ default "default" .Values.serviceAccount.name }}
{{- end -}}
{{- end -}}

{{/* Variables without secrets: name -> value. What `settings` names wins. */}}
{{- define "stateyard.environment" -}}
{{- $web := printf "%s-web" (include "stateyard.fullname" .) -}}
{{- $own := dict
  "STATEYARD_URL" (printf "http://%s:%d" $web (int .Values.service.port))
  "STATEYARD_HOSTS" (printf "%s,%s" $web .Values.host)
  "STATEYARD_HTTPS" (ternary "1" "0" .Values.https)
  "STATEYARD_LOG" "json"
  "STATEYARD_CONFIG" "/config" -}}
{{ toYaml (merge (dict) .Values.settings $own) }}
{{- end -}}

{{- define "stateyard.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "stateyard.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "stateyard.mounts" -}}
- name: data
  mountPath: /data
- name: tmp
  mountPath: /tmp
- name: config
  mountPath: /config
  readOnly: true
{{- end -}}

{{- define "stateyard.volumes" -}}
- name: data  # signs of life, the journal of steps, layouts: they outlive a container, not the pod
  emptyDir:
    sizeLimit: 1Gi
- name: tmp
  emptyDir:
    medium: Memory
    sizeLimit: {{ .Values.tmpSize }}
- name: config
  {{- if .Values.configSecret }}
  secret:
    secretName: {{ .Values.configSecret }}
  {{- else }}
  configMap:
    name: {{ default (printf "%s-files" (include "stateyard.fullname" .)) .Values.existingConfigMap }}
  {{- end }}
{{- end -}}

{{- define "stateyard.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "stateyard.selector" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .component }}
{{- end -}}
