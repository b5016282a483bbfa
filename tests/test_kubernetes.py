"""The Helm chart and the plain manifests: what they start, with which rights, and how it ends.

Objects are checked against the schemas of Kubernetes. Where ``helm`` is on the PATH it renders the
chart, and the result is checked as well; elsewhere the chart's values and schema are. No test has a
cluster.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
import warnings
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from django.test import Client

from console.config import environment, local_options
from tests.test_deployment import started

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of packages that it imports
    import jsonschema
    import kubernetes_validate

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow  # its schemas of Kubernetes are in the extra test-full
ROOT = Path(__file__).parent.parent
PLAIN = ROOT / "deploy/manifests"
CHART = ROOT / "deploy/helm/stateyard"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
SCHEMA = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
TEMPLATES = sorted((CHART / "templates").iterdir())
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
HELM = shutil.which("helm")
KUBERNETES = ("1.29", "1.33")
ALL = ("ingress.enabled=true", "ingress.className=nginx", "ingress.tlsSecret=stateyard-tls")
STOPS_WITHIN_S = 10
"""A process ends so soon after SIGTERM: docs/how-to/team-server.md."""


def objects_of(text: str) -> list[dict[str, Any]]:
    """Return the objects of a YAML file."""
    return [each for each in yaml.safe_load_all(text) if each]


def plain_objects() -> list[dict[str, Any]]:
    """Return the objects of all plain manifests."""
    files = [file for file in sorted(PLAIN.glob("*.yaml")) if file.name != "kustomization.yaml"]
    return [each for file in files for each in objects_of(file.read_text(encoding="utf-8"))]


def rendered(*settings: str) -> list[dict[str, Any]]:
    """Return the objects of the chart as ``helm`` renders it."""
    assert HELM is not None
    command = [HELM, "template", "stateyard", str(CHART)]
    for setting in settings:
        command += ["--set", setting]
    return objects_of(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


SETS = ["plain", *(["chart", "chart with everything"] if HELM else [])]


@cache
def objects_in(name: str) -> list[dict[str, Any]]:
    """Return the objects of one of ``SETS``."""
    if name == "plain":
        return plain_objects()
    more = ("networkPolicy.enabled=true", "config.mocks\\.json=x") if name != "chart" else ()
    return rendered(*ALL, *more)


def pods(objects: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield the component, the pod and the container of each Deployment and Job."""
    for each in objects:
        if each["kind"] in ("Deployment", "Job"):
            pod = each["spec"]["template"]["spec"]
            (container,) = pod["containers"]
            yield container["name"], pod, container


@pytest.fixture(params=SETS)
def objects(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """Return the plain manifests; where ``helm`` is, the rendered chart as well."""
    return objects_in(request.param)


def one_of(objects: list[dict[str, Any]], kind: str, end: str) -> dict[str, Any]:
    """Return the object of a kind whose name ends so."""
    names = {each["metadata"]["name"]: each for each in objects if each["kind"] == kind}
    (name,) = [name for name in names if name.endswith(end)]
    return names[name]


@pytest.mark.parametrize("version", KUBERNETES)
def test_objects_are_valid(objects: list[dict[str, Any]], version: str) -> None:
    """No member is unknown, none is missing."""
    assert {each["kind"] for each in objects} >= {
        *("ConfigMap", "Deployment", "Ingress", "Job", "PodDisruptionBudget", "Service"),
        "ServiceAccount",
    }
    for each in objects:
        kubernetes_validate.validate(each, version, strict=True)


def test_an_invalid_object_would_be_seen() -> None:
    """The check above can fail."""
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"a": 1}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(service, KUBERNETES[0], strict=True)


def test_containers_start_commands_of_ours(objects: list[dict[str, Any]]) -> None:
    """Web, worker, the migration and each probe by a command name commands and options."""
    commands = {name: container["command"] for name, _, container in pods(objects)}
    assert set(commands) == {"migration", "web", "worker"}
    for command in commands.values():
        started(command)
    for _, _, container in pods(objects):
        for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
            if "exec" in container.get(probe, {}):
                started(container[probe]["exec"]["command"])


def test_pods_may_do_little(objects: list[dict[str, Any]]) -> None:
    """No root, a read-only root file system, no capability, no token of the cluster."""
    for name, pod, container in pods(objects):
        assert pod["automountServiceAccountToken"] is False, name
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == 10001
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        security = container["securityContext"]
        assert security["readOnlyRootFilesystem"] is True
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
        assert {"/data", "/tmp"} <= set(mounts)  # noqa: S108 - a path in a container
        assert all(mount.get("readOnly") for path, mount in mounts.items() if path == "/config")
        assert container["resources"]["requests"]["memory"]
        assert container["resources"]["limits"]["memory"]


def test_no_variable_of_a_service_reaches_the_settings(objects: list[dict[str, Any]]) -> None:
    """A Service stateyard-web would set STATEYARD_WEB_PORT, which the settings refuse."""
    assert {pod["enableServiceLinks"] for _, pod, _ in pods(objects)} == {False}


def test_variables_are_settings(objects: list[dict[str, Any]]) -> None:
    """The server answers at the address that it names, to people and to its workers."""
    data = one_of(objects, "ConfigMap", "stateyard")["data"]
    assert set(data) <= {*environment.known_variables, *local_options.VARIABLES}
    service = one_of(objects, "Service", "-web")
    (port,) = service["spec"]["ports"]
    assert data["STATEYARD_URL"] == f"http://{service['metadata']['name']}:{port['port']}"
    ingress = one_of(objects, "Ingress", "stateyard")["spec"]["rules"][0]
    assert data["STATEYARD_HOSTS"] == f"{service['metadata']['name']},{ingress['host']}"
    assert data["STATEYARD_HTTPS"] == "1"
    (path,) = ingress["http"]["paths"]
    assert path["backend"]["service"]["name"] == service["metadata"]["name"]
    assert path["backend"]["service"]["port"]["name"] == port["name"]
    secret = {"STATEYARD_SECRET", "STATEYARD_DATABASE_URL", "STATEYARD_METRICS_TOKEN"}
    assert not secret & set(data)
    for _, _, container in pods(objects):
        assert {"secretRef": {"name": "stateyard"}} in container["envFrom"]


@pytest.mark.django_db
def test_probes_are_answered(objects: list[dict[str, Any]], settings: Any) -> None:
    """By HTTP to the host that they name, with HTTPS set: no redirect, no refusal."""
    settings.SECURE_SSL_REDIRECT = True
    settings.ALLOWED_HOSTS = ["localhost", "stateyard-web", "yard.example.com"]
    (web,) = [container for name, _, container in pods(objects) if name == "web"]
    paths = {}
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        request = web[name]["httpGet"]
        headers = {header["name"]: header["value"] for header in request["httpHeaders"]}
        paths[name] = request["path"]
        assert Client().get(request["path"], headers=headers).status_code in (200, 503)
    assert paths == {
        "startupProbe": "/healthz",
        "livenessProbe": "/healthz",
        "readinessProbe": "/readyz",
    }
    assert Client().get("/healthz", headers={"Host": "10.1.2.3:8083"}).status_code == 400
    assert web["readinessProbe"]["timeoutSeconds"] > 3, "/readyz answers within three seconds"


def test_a_worker_is_not_killed_for_an_outage(objects: list[dict[str, Any]]) -> None:
    """A worker whose database is out fails ``worker_health``, and no restart would help."""
    (worker,) = [container for name, _, container in pods(objects) if name == "worker"]
    assert worker["readinessProbe"]["exec"]["command"][-1] == "worker_health"
    assert "livenessProbe" not in worker


def test_processes_have_time_to_end(objects: list[dict[str, Any]]) -> None:
    """A web process drains first; both have more time than they need after SIGTERM."""
    for name, pod, container in pods(objects):
        if name == "migration":
            continue
        sleep = container.get("lifecycle", {}).get("preStop", {}).get("exec", {})
        drain_s = int(sleep["command"][1]) if sleep else 0
        assert (drain_s > 0) is (name == "web")
        assert pod["terminationGracePeriodSeconds"] >= drain_s + STOPS_WITHIN_S + 5


def test_selectors_match(objects: list[dict[str, Any]]) -> None:
    """Service, budgets and Deployments choose the pods of their component, and no others."""
    labels = {
        each["metadata"]["name"]: each["spec"]["template"]["metadata"]["labels"]
        for each in objects
        if each["kind"] == "Deployment"
    }
    for each in objects:
        if each["kind"] == "Deployment":
            selector = each["spec"]["selector"]["matchLabels"]
        elif each["kind"] == "PodDisruptionBudget":
            selector = each["spec"]["selector"]["matchLabels"]
            assert each["spec"]["minAvailable"] == 1
        elif each["kind"] == "Service":
            selector = each["spec"]["selector"]
        else:
            continue
        chosen = [name for name, has in labels.items() if selector.items() <= has.items()]
        assert chosen == [each["metadata"]["name"]]


def test_the_plain_set_is_listed() -> None:
    """kustomization.yaml has every file but the Job, the example of a Secret, and itself."""
    kustomization = yaml.safe_load((PLAIN / "kustomization.yaml").read_text(encoding="utf-8"))
    apart = {"kustomization.yaml", "migration.yaml", "secret.example.yaml"}
    assert {*kustomization["resources"]} == {file.name for file in PLAIN.iterdir()} - apart
    secret = objects_of((PLAIN / "secret.example.yaml").read_text(encoding="utf-8"))[0]
    assert set(secret["stringData"].values()) == {""}


def test_versions_are_that_of_the_release() -> None:
    """Chart and manifests name the image of this version."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["appVersion"] == VERSION
    assert {container["image"] for _, _, container in pods(objects_in("plain"))} == {
        f"stateyard:{VERSION}"
    }
    kustomization = yaml.safe_load((PLAIN / "kustomization.yaml").read_text(encoding="utf-8"))
    assert kustomization["images"][0]["newTag"] == VERSION


# -- the chart itself ------------------------------------------------------------------------------


def test_values_fit_their_schema() -> None:
    """The defaults are valid; the schema has each of them and refuses other names."""
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    validator = jsonschema.Draft7Validator(SCHEMA)
    validator.validate(VALUES)
    for wrong in (
        {**VALUES, "replicas": 3},
        {**VALUES, "web": {**VALUES["web"], "replicas": 0}},
        {**VALUES, "settings": {"STATEYARD_SECRET": "x"}},
        {**VALUES, "settings": {"PATH": "x"}},
        {**VALUES, "host": "https://yard.example.com"},
    ):
        assert list(validator.iter_errors(wrong))
    assert {*SCHEMA["properties"]} - {"global"} == {*VALUES}
    for name, values in VALUES.items():
        known = SCHEMA["properties"][name]
        if isinstance(values, dict) and known.get("additionalProperties") is False:
            assert {*known["properties"]} == {*values}, name


def test_templates_read_values_that_are_there() -> None:
    """A path of values in a template stands in values.yaml; each block has its end."""
    for file in TEMPLATES:
        text = file.read_text(encoding="utf-8")
        for path in re.findall(r"(?:\$|\b|(?<=\s))\.Values((?:\.\w+)+)", text):
            values: Any = VALUES
            for name in path.strip(".").split("."):
                assert name in values, f"{file.name}: {path}"
                values = values[name]
        opened = re.findall(r"\{\{-? *(?:if|range|with|define) ", text)
        assert len(opened) == len(re.findall(r"\{\{-? *end *-?\}\}", text)), file.name


def test_the_chart_and_the_plain_set_agree() -> None:
    """Where ``helm`` is, it lints the chart, and its pods are those of the plain manifests."""
    kinds = {yaml.safe_load(re.sub(r"\{\{.*?\}\}", "x", line))["kind"]
             for file in TEMPLATES for line in re.findall(r"^kind: \w+$",
             file.read_text(encoding="utf-8"), re.MULTILINE)}  # fmt: skip
    assert kinds >= {each["kind"] for each in objects_in("plain")} - {"Secret"}
    if HELM is None:
        return
    subprocess.run([HELM, "lint", "--strict", str(CHART)], check=True, capture_output=True)
    plain = {name: pod for name, pod, _ in pods(objects_in("plain"))}
    assert {name: pod for name, pod, _ in pods(objects_in("chart"))} == plain
