#!/usr/bin/env bash
# The whole system under a real Prometheus while workers, schedulers, the broker, the provider and the platform fail: all dashboard
# queries must return data, and the alerts must fire. Takes about a minute after the build.
set -euo pipefail
cd "$(dirname "$0")"
TALARIA_PROMETHEUS=$(./tools.sh) cargo test -p talaria-tests --test watched --locked -- --nocapture
