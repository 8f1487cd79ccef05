#!/usr/bin/env bash
# Prints the folder of a prometheus and a promtool: those that are installed, else Debian's package, unpacked and not installed,
# so that no service is started.
set -euo pipefail
if command -v promtool >/dev/null && command -v prometheus >/dev/null; then
  dirname "$(command -v promtool)"
  exit
fi
folder=$(cd "$(dirname "$0")/../.." && pwd)/target/tools/prometheus
if [ ! -x "$folder/usr/bin/promtool" ]; then
  command -v apt-get >/dev/null || {
    echo "promtool is missing: install Prometheus (https://prometheus.io/download), with promtool in PATH" >&2
    exit 1
  }
  mkdir -p "$folder"
  cd "$folder"
  echo "unpacking prometheus from the package registry, for promtool" >&2
  if [ "$(id -u)" = 0 ]; then apt-get update -qq >/dev/null 2>&1 || true; fi
  apt-get download -qq prometheus >/dev/null 2>&1 || {
    echo "the package prometheus cannot be downloaded; install it, with promtool in PATH" >&2
    exit 1
  }
  dpkg-deb -x prometheus_*.deb .
  rm -f prometheus_*.deb
fi
echo "$folder/usr/bin"
