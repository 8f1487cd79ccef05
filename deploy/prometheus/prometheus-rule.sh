#!/usr/bin/env bash
# Prints rules/*.yaml as PrometheusRule objects, for clusters with the Prometheus operator: kubectl apply -f <(prometheus-rule.sh)
set -euo pipefail
cd "$(dirname "$0")/rules"
for file in *.yaml; do
  name=talaria-$(basename "$file" .yaml)
  printf -- '---\napiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: %s\n  labels:\n    app.kubernetes.io/part-of: talaria\nspec:\n' "$name"
  sed -e '/^#/d' -e 's/^/  /' -e 's/[[:space:]]*$//' "$file"
done
