#!/usr/bin/env bash
# Checks what is watched, with Prometheus' own tools: configuration, rules, their tests, and that the dashboards are up to date.
# What needs no tool (metrics exist, alerts have pages, panels are described) is a test: tests/tests/observability.rs.
set -euo pipefail
cd "$(dirname "$0")"

PATH=$(./tools.sh):$PATH

promtool check config prometheus.yaml
promtool check rules rules/*.yaml
promtool test rules tests/*.yaml

# An alert that no test lets fire might never fire.
missing=$(sed -n 's/^ *- alert: //p' rules/*.yaml | while read -r alert; do grep -q "alertname=\"$alert\"" tests/*.yaml || echo "$alert"; done)
if [ -n "$missing" ]; then
  echo "no test lets these alerts fire:" $missing >&2
  exit 1
fi

# The operator's form must have the same rules.
if [ "$(./prometheus-rule.sh | grep -cE '^ +- (alert|record): ')" != "$(cat rules/*.yaml | grep -cE '^ +- (alert|record): ')" ]; then
  echo "prometheus-rule.sh loses rules" >&2
  exit 1
fi

python3 ../grafana/dashboards.py --check
echo "rules, their tests and the dashboards are fine"
