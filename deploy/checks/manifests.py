"""Checks rendered manifests: strictly against the schemas of Kubernetes and KEDA, and for what ours promise.

A misspelt key is an error: Kubernetes itself would ignore it."""

import logging
import sys

import jsonschema
import kubernetes_validate
import yaml
from cloudcoil.models.keda import v1alpha1 as keda

KUBERNETES = "1.37"
PODS = {"Deployment", "StatefulSet", "Job"}
# Kinds for which no schema is to be had without a cluster.
UNCHECKED = {("gateway.networking.k8s.io/v1", "HTTPRoute")}
faults = []


def strict(schema):
    """The same schema, but what it does not name is not allowed."""
    for part in [schema, *schema.get("$defs", {}).values()]:
        if part.get("properties") and "additionalProperties" not in part:
            part["additionalProperties"] = False
    return schema


KEDA = {"ScaledObject": strict(keda.ScaledObject.model_json_schema(by_alias=True))}


def validate(file, document):
    kind, name = document["kind"], document["metadata"]["name"]
    if document["apiVersion"].startswith("keda.sh/"):
        for error in jsonschema.Draft202012Validator(KEDA[kind]).iter_errors(document):
            faults.append(f"{file}: {kind}/{name}: {error.json_path}: {error.message}")
    elif (document["apiVersion"], kind) not in UNCHECKED:
        try:
            kubernetes_validate.validate(document, KUBERNETES, strict=True)
        except (kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as error:
            faults.append(f"{file}: {kind}/{name}: {error}")


def seconds(text):
    return int(text.removesuffix("s"))


def selects(selector, labels):
    return selector.get("matchLabels", {}).items() <= labels.items()


def check_pod(file, document, everything, full):
    """What each pod promises, and that something protects it. `full` is with budgets and network policies."""
    kind, name = document["kind"], document["metadata"]["name"]
    template = document["spec"]["template"]
    pod, labels = template["spec"], template["metadata"]["labels"]

    def want(condition, what):
        if not condition:
            faults.append(f"{file}: {kind}/{name}: {what}")

    want(pod.get("automountServiceAccountToken") is False, "has a token of Kubernetes")
    want(any(d["kind"] == "ServiceAccount" and d["metadata"]["name"] == pod.get("serviceAccountName") for d in everything), "its ServiceAccount does not exist")
    want(pod["securityContext"]["runAsNonRoot"] is True, "may run as root")
    if kind != "Job":
        want(selects(document["spec"]["selector"], labels), "does not select its own pods")
        want("topologySpreadConstraints" in pod, "is not spread over machines")
    volumes = {volume["name"] for volume in pod.get("volumes", [])}
    volumes |= {claim["metadata"]["name"] for claim in document["spec"].get("volumeClaimTemplates", [])}
    for container in pod["containers"]:
        context = container["securityContext"]
        want(context["readOnlyRootFilesystem"] and context["capabilities"] == {"drop": ["ALL"]} and not context["allowPrivilegeEscalation"], "is not restricted")
        want("memory" in container["resources"].get("limits", {}) and "cpu" in container["resources"]["requests"], "asks for no resources")
        want(kind == "Job" or {"livenessProbe", "readinessProbe"} <= container.keys(), "has no probes")
        want({mount["name"] for mount in container.get("volumeMounts", [])} <= volumes, "mounts what is not there")
        env = {entry["name"]: entry.get("value") for entry in container.get("env", [])}
        want(len(env) == len(container.get("env", [])), "sets a variable twice")
        if drain := env.get("TALARIA__WORKER__DRAIN"):
            # What is cut off at the end of the drain has 5 s for its last words.
            want(pod["terminationGracePeriodSeconds"] >= seconds(drain) + 10, "is killed before it has drained")
    if full and kind != "Job":
        budgets = [d for d in everything if d["kind"] == "PodDisruptionBudget" and selects(d["spec"]["selector"], labels)]
        want(len(budgets) == 1, f"has {len(budgets)} disruption budgets")
    if full:
        policies = [d for d in everything if d["kind"] == "NetworkPolicy" and selects(d["spec"]["podSelector"], labels)]
        want(len(policies) == 2, f"has {len(policies)} network policies beside each other; the general one and its own were expected")


def check_references(file, everything):
    """What names another thing names one that exists."""
    names = {(d["kind"], d["metadata"]["name"]) for d in everything}
    if len(names) != len(everything):
        faults.append(f"{file}: two things of one kind have one name")
    for document in everything:
        target = document["spec"].get("scaleTargetRef") if document["kind"] in {"ScaledObject", "HorizontalPodAutoscaler"} else None
        if target and (target["kind"], target["name"]) not in names:
            faults.append(f"{file}: {document['metadata']['name']} scales {target['name']}, which does not exist")
        if target and next(d for d in everything if d["kind"] == "Deployment" and d["metadata"]["name"] == target["name"])["spec"].get("replicas") is not None:
            faults.append(f"{file}: {target['name']} is scaled and has a fixed number of replicas")
        if document["kind"] == "Service":
            pods = [d["spec"]["template"]["metadata"]["labels"] for d in everything if d["kind"] in PODS]
            if not any(document["spec"]["selector"].items() <= labels.items() for labels in pods):
                faults.append(f"{file}: the service {document['metadata']['name']} selects no pod")


def main(files):
    logging.disable(logging.WARNING)
    for file in files:
        everything = [document for document in yaml.load_all(open(file), Loader=yaml.CSafeLoader) if document]
        full = any(document["kind"] == "NetworkPolicy" for document in everything)
        for document in everything:
            validate(file, document)
            if document["kind"] in PODS:
                check_pod(file, document, everything, full)
        check_references(file, everything)
        print(f"   {file.rsplit('/', 1)[-1]}: {len(everything)} things")
    if faults:
        sys.exit("\n".join(faults))


main(sys.argv[1:])
