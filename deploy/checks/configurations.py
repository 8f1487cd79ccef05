"""Checks what is configured in the manifests and in Compose by the programs that read it: `talaria config` must know every
setting, and nats-server must accept every configuration of a broker."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import yaml

talaria, tools, work, *files = sys.argv[1:]
talaria, work = os.path.abspath(talaria), pathlib.Path(work)
faults = []
# Kept by whoever makes the dashboards and rules.
OTHERS = ("../prometheus", "../grafana")


def settings(where, env, toml):
    """Talaria reads these variables and this file, and nothing in them is unknown to it."""
    (work / "secrets").mkdir(exist_ok=True)
    config = work / "talaria.toml"
    config.write_text(toml)
    env = {name: value for name, value in env.items() if value is not None} | {"TALARIA_SECRETS": str(work / "secrets")}
    ran = subprocess.run([talaria, "config", "--json", "--config", config], env=env, capture_output=True, text=True)
    if ran.returncode != 0:
        faults.append(f"{where}: {ran.stderr.strip()}")
        return
    known = json.loads(ran.stdout)
    faults.extend(f"{where}: {warning}" for warning in known["warnings"])
    wanted = [name for name in env if name.startswith("TALARIA__")]
    found = [name for name, setting in known["settings"].items() if setting["origin"] == "environment"]
    if len(wanted) != len(found):
        faults.append(f"{where}: {len(wanted)} settings are given as variables, and {len(found)} arrive")


def certificates():
    """A certificate for a broker's configuration; none where openssl is missing."""
    if not shutil.which("openssl"):
        print("   openssl is missing: TLS of the brokers is left out")
        return None
    tls = work / "tls"
    if not tls.exists():
        tls.mkdir()
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
                        "-subj", "/CN=nats", "-keyout", tls / "tls.key", "-out", tls / "tls.crt"], check=True, capture_output=True)
        shutil.copy(tls / "tls.crt", tls / "ca.crt")
    return tls


def broker(where, texts, env):
    """nats-server accepts the configuration."""
    folder = work / "nats"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "data").mkdir(parents=True)
    tls = certificates()
    for name, text in texts.items():
        text = text.replace('"/etc/nats/tls/', f'"{tls}/') if tls else re.sub(r"\btls \{[^}]*\}", "", text)
        (folder / name).write_text(text.replace('"/data"', f'"{folder}/data"'))
    ran = subprocess.run([nats_server, "-t", "--config", folder / "nats.conf"], env=env, capture_output=True, text=True)
    if ran.returncode != 0:
        faults.append(f"{where}: {ran.stderr.strip()}")


def expand(env):
    """$(NAME) in a variable, as Kubernetes does it."""
    return {name: re.sub(r"\$\((\w+)\)", lambda found: env[found[1]], value) for name, value in env.items()}


def source(entry):
    """What a variable without a value would hold: a size, else a name or a password."""
    return "1073741824" if "resourceFieldRef" in entry.get("valueFrom", {}) else "p0123e4"


def check_manifests(file):
    everything = [document for document in yaml.load_all(open(file), Loader=yaml.CSafeLoader) if document]
    configs = {d["metadata"]["name"]: d["data"] for d in everything if d["kind"] == "ConfigMap"}
    toml = next(data["talaria.toml"] for data in configs.values() if "talaria.toml" in data)
    for document in everything:
        if document["kind"] not in {"Deployment", "StatefulSet", "Job"}:
            continue
        container = document["spec"]["template"]["spec"]["containers"][0]
        where = f"{pathlib.Path(file).name}: {document['metadata']['name']}"
        env = {entry["name"]: entry.get("value", source(entry)) for entry in container.get("env", [])}
        if container["name"] == "nats":
            broker(where, configs[document["metadata"]["name"]], expand(env))
        else:
            settings(where, env, toml)


def check_compose():
    compose = yaml.safe_load(open("deploy/compose/compose.yaml"))
    for name, service in compose["services"].items():
        env = service.get("environment", {})
        if "TALARIA__NATS__URL" in env:
            settings(f"compose.yaml: {name}", env, "")
        for volume in service.get("volumes", []):
            host = volume.split(":")[0]
            if host.startswith("."):
                if not (pathlib.Path("deploy/compose") / host).exists() and not host.startswith(OTHERS):
                    faults.append(f"compose.yaml: {name}: {host} does not exist")
            elif host not in compose["volumes"]:
                faults.append(f"compose.yaml: {name}: the volume {host} does not exist")
    users = ["INGRESS", "SCHEDULER", "WORKER", "OPERATOR", "ROUTE"]
    env = {f"NATS_PASSWORD_{user}": "p0123e4" for user in users} | {"NATS_NAME": "nats-1"}
    env |= {f"NATS_ROUTE_{i}": f'"nats-route://route:p0123e4@nats-{i}:6222"' for i in (1, 2, 3)}
    texts = {"nats.conf": pathlib.Path("deploy/compose/nats.conf").read_text(),
             "nats-permissions.conf": pathlib.Path("deploy/kubernetes/chart/files/nats-permissions.conf").read_text()}
    broker("compose/nats.conf", texts, env)


nats_server = subprocess.run([talaria, "nats", "--data", tools], check=True, capture_output=True, text=True).stdout.strip()
for file in files:
    check_manifests(file)
check_compose()
if faults:
    sys.exit("\n".join(faults))
