{{- /* Names, labels and the parts that all pods share. */ -}}

{{- define "talaria.name" -}}
{{- if contains "talaria" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-talaria{{ end -}}
{{- end }}

{{- define "talaria.selector" -}}
app.kubernetes.io/name: talaria
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- with .pool }}
talaria/pool: {{ . }}
{{- end }}
{{- end }}

{{- define "talaria.labels" -}}
{{ include "talaria.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: talaria
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}

{{- define "talaria.image" -}}
{{ .root.Values.image.repository }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}
{{- end }}

{{- define "talaria.natsUrl" -}}
{{- if .Values.nats.enabled -}}
{{- if .Values.nats.tls.enabled }}tls{{ else }}nats{{ end }}://{{ include "talaria.name" . }}-nats.{{ .Release.Namespace }}.svc:4222
{{- else -}}
{{ required "nats.url is needed where nats.enabled is false" .Values.nats.url }}
{{- end -}}
{{- end }}

{{- /* The environment of every process of ours. `user` is whom the broker knows it as. */ -}}
{{- define "talaria.env" -}}
- name: TALARIA_SECRETS
  value: /etc/talaria/secrets
- name: TALARIA__NATS__URL
  value: {{ include "talaria.natsUrl" .root | quote }}
{{- if .root.Values.nats.auth.enabled }}
- name: TALARIA__NATS__USER
  value: {{ .user }}{{ if .root.Values.nats.auth.useNext }}-next{{ end }}
- name: TALARIA__STREAMS__CREATE
  value: "false"
{{- end }}
{{- if .root.Values.nats.tls.enabled }}
- name: TALARIA__NATS__CA_FILE
  value: /etc/talaria/tls/ca.crt
{{- if .root.Values.nats.tls.mutual }}
- name: TALARIA__NATS__CERT_FILE
  value: /etc/talaria/tls/tls.crt
- name: TALARIA__NATS__KEY_FILE
  value: /etc/talaria/tls/tls.key
{{- end }}
{{- end }}
- name: TALARIA__STREAMS__REPLICAS
  value: {{ .root.Values.streams.replicas | quote }}
- name: TALARIA__STREAMS__PARTITIONS
  value: {{ .root.Values.streams.partitions | quote }}
- name: TALARIA__TELEMETRY__LOG
  value: {{ .root.Values.telemetry.log | quote }}
- name: TALARIA__TELEMETRY__LOG_FORMAT
  value: json
{{- with .root.Values.telemetry.otlpEndpoint }}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ . | quote }}
{{- end }}
- name: TALARIA__WORKER__SLOT
  valueFrom: { fieldRef: { fieldPath: metadata.name } }
{{- end }}

{{- define "talaria.mounts" -}}
- { name: config, mountPath: /etc/talaria/talaria.toml, subPath: talaria.toml, readOnly: true }
- { name: secrets, mountPath: /etc/talaria/secrets, readOnly: true }
{{- if .root.Values.nats.tls.enabled }}
- { name: tls, mountPath: /etc/talaria/tls, readOnly: true }
{{- end }}
{{- end }}

{{- /* `secret` holds the service's own settings, `user` is the key of its password. */ -}}
{{- define "talaria.volumes" -}}
{{- $auth := .root.Values.nats.auth -}}
- name: config
  configMap: { name: {{ include "talaria.name" .root }} }
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      {{- with .secret }}
      - secret: { name: {{ . }}, optional: true }
      {{- end }}
      {{- if $auth.enabled }}
      - secret:
          name: {{ if $auth.useNext }}{{ required "nats.auth.nextSecret" $auth.nextSecret }}{{ else }}{{ $auth.secret }}{{ end }}
          items: [{ key: {{ .user }}, path: nats.password }]
      {{- end }}
{{- if .root.Values.nats.tls.enabled }}
- name: tls
  secret:
    secretName: {{ if .root.Values.nats.tls.mutual }}{{ .root.Values.nats.tls.clientSecret }}{{ else }}{{ .root.Values.nats.tls.serverSecret }}{{ end }}
    defaultMode: 0440
    {{- if not .root.Values.nats.tls.mutual }}
    items: [{ key: ca.crt, path: ca.crt }]
    {{- end }}
{{- end }}
{{- end }}

{{- define "talaria.podSecurity" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: { type: RuntimeDefault }
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "talaria.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end }}

{{- define "talaria.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: {{ .spread | default .root.Values.spread }}
    labelSelector: { matchLabels: {{ include "talaria.selector" . | fromYaml | toJson }} }
  - maxSkew: 1
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: ScheduleAnyway
    labelSelector: { matchLabels: {{ include "talaria.selector" . | fromYaml | toJson }} }
{{- end }}

{{- /* Started once the broker and its streams can be used; alive while its loops come round; ready when it does its work. */ -}}
{{- define "talaria.probes" -}}
startupProbe:
  httpGet: { path: /healthz, port: http }
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: { path: /healthz, port: http }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: { path: /readyz, port: http }
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 2
{{- end }}

{{- define "talaria.annotations" -}}
{{- if .root.Values.scrapeAnnotations -}}
prometheus.io/scrape: "true"
prometheus.io/port: {{ .port | quote }}
prometheus.io/path: /metrics
{{ end -}}
talaria/settings: {{ .root.Values.settings | sha256sum | trunc 16 }}
{{- end }}

{{- /* A pool's values: the defaults, changed by its own. */ -}}
{{- define "talaria.pool" -}}
{{- mergeOverwrite (deepCopy .root.Values.workerDefaults) (deepCopy (.own | default dict)) | toYaml -}}
{{- end }}

{{- /* What every pod of ours may reach: names, and the broker. */ -}}
{{- define "talaria.egress" -}}
- to: [{ namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: kube-system } } }]
  ports: [{ protocol: UDP, port: 53 }, { protocol: TCP, port: 53 }]
{{- if .root.Values.nats.enabled }}
- to: [{ podSelector: { matchLabels: {{ include "talaria.selector" (dict "root" .root "component" "nats") | fromYaml | toJson }} } }]
  ports: [{ protocol: TCP, port: 4222 }]
{{- else }}
- ports: [{ protocol: TCP, port: 4222 }]
{{- end }}
{{- if .root.Values.telemetry.otlpEndpoint }}
- to: [{ namespaceSelector: {} }]
  ports: [{ protocol: TCP, port: 4317 }]
{{- end }}
{{- end }}
{{- define "talaria.internet" -}}
- to: [{ ipBlock: { cidr: 0.0.0.0/0, except: {{ .root.Values.networkPolicies.privateNetworks | toJson }} } }]
  ports: [{ protocol: TCP, port: 443 }, { protocol: TCP, port: 80 }]
{{- end }}
