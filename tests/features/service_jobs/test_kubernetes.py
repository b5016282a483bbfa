"""Calls to a cluster are what Kubernetes and EKS expect, and go to named clusters only."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

import engine
from console import integrations
from console.features.service_jobs import kubernetes
from console.features.targets import explain
from console.integrations import targets
from console.integrations.outcome import Failed, Submitted, Succeeded, TaskAttempt
from tests.acceptance.kube import Kube

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEYS = {"access_key_id": "AKIDEXAMPLE", "secret_access_key": "hush"}
CONTAINER = {"name": "pi", "image": "perl"}
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "pi", "labels": {"a": "b"}},
    "spec": {"template": {"spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}},
}


@pytest.fixture
def kube(settings: Any) -> Iterator[Kube]:
    """A cluster that may be called."""
    with Kube() as running:
        settings.STATEYARD_TARGETS = {"kubernetes": {"endpoints": [running.url], **KEYS}}
        yield running


def task(
    action: str, kube: Kube, pattern: str = "", key: str = "key-1", **parameters: Any
) -> TaskAttempt:
    """Return a task that asks a cluster."""
    authority = base64.b64encode(kube.authority.encode()).decode()
    cluster = {"ClusterName": "blue", "CertificateAuthority": authority, "Endpoint": kube.url}
    arn = "arn:aws:states:us-east-1:123456789012:execution:m:x"
    text = engine.dumps(cluster | parameters)
    return TaskAttempt(
        "service", action, "eks", action, text, key, arn, "token", None, pattern, project="default"
    )


def read(outcome: Any) -> Any:
    """Return the result of a task that succeeded."""
    assert isinstance(outcome, Succeeded), outcome
    return engine.loads(outcome.output)


# -- eks:call --------------------------------------------------------------------------------------


def test_a_call_and_its_answer(kube: Kube) -> None:
    """Method, path, query and body go out as they are; the answer comes with its status."""
    kube.logs = {"pod-1": {"pi": "3.14"}}
    query = {"labelSelector": ["job-name=pi", "x"], "limit": ["5"]}
    path = "/api/v1/namespaces/default/pods"
    response = read(
        integrations.call_task(task("call", kube, Method="GET", Path=path, QueryParameters=query))
    )
    assert (response["StatusCode"], response["StatusText"]) == (200, "OK")
    assert response["ResponseBody"]["items"][0]["metadata"] == {"name": "pod-1"}
    assert set(response) == {"ResponseBody", "StatusCode", "StatusText"}
    (asked,) = kube.seen
    assert (asked.path, asked.query, asked.body) == (path, query, None)


@pytest.mark.parametrize(
    ("method", "body", "kind"),
    [
        ("POST", JOB, "application/json"),
        ("POST", engine.dumps(JOB), "application/json"),
        ("PUT", JOB, "application/json"),
        ("PATCH", {"spec": {"suspend": True}}, "application/merge-patch+json"),
        ("PATCH", [{"op": "remove", "path": "/x"}], "application/json-patch+json"),
    ],
)
def test_bodies_have_their_type(kube: Kube, method: str, body: Any, kind: str) -> None:
    """Kubernetes refuses a patch that does not say which kind it is."""
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    path = jobs if method == "POST" else f"{jobs}/pi"
    kube.jobs["default", "pi2"] = JOB
    integrations.call_task(task("call", kube, Method=method, Path=path, RequestBody=body))
    (asked,) = kube.seen
    assert asked.headers["content-type"] == kind
    assert asked.body == (engine.loads(body) if isinstance(body, str) else body)


def test_what_the_cluster_refuses(kube: Kube) -> None:
    """The error is EKS and the status, its cause the whole answer, as documented."""
    outcome = integrations.call_task(
        task("call", kube, Method="GET", Path="/apis/batch/v1/namespaces/default/jobs/none")
    )
    assert isinstance(outcome, Failed)
    assert outcome.error == "EKS.404"
    cause = engine.loads(outcome.cause or "")
    assert cause["StatusCode"] == 404
    assert cause["StatusText"] == "Not Found"
    assert cause["ResponseBody"]["reason"] == "NotFound"


@pytest.mark.parametrize(
    ("action", "parameters", "problem"),
    [
        ("call", {"Method": "GET"}, "The field 'Path' is required but was missing"),
        (
            *("call", {"Method": "LIST", "Path": "pods"}),
            "The value of the field 'Method' has an invalid format, The value of the field 'Path'",
        ),
        (
            *("call", {"Method": "GET", "Path": "/", "QueryParameters": {"limit": "5"}}),
            "The value for the field 'QueryParameters.limit' must be an ARRAY, got \"5\"",
        ),
        (
            *("runJob", {"Job": JOB, "LogOptions": {"RetrieveLogs": "yes"}}),
            "The value for the field 'LogOptions.RetrieveLogs' must be a BOOLEAN, got \"yes\"",
        ),
        ("runJob", {"Job": "no JSON"}, "The value of the field 'Job' has an invalid format"),
        ("runJob", {"Job": ["a"]}, "The value of the field 'Job' has an invalid format"),
        ("runJob", {"Job": {"metadata": "pi"}}, "The value of the field 'Job' has an invalid"),
        (
            "runJob",
            {"Job": JOB, "Endpoint": "http://x?a#b"},
            "The value of the field 'Endpoint' has",
        ),
        (
            *("runJob", {"Job": JOB, "Wait": 1}),
            'The field "Wait" is not supported by Step Functions',
        ),
        ("runJob", {"Job": JOB, "Endpoint": "ftp://x"}, "The value of the field 'Endpoint' has an"),
    ],
)
def test_parameters_that_are_no_request(
    kube: Kube, action: str, parameters: Any, problem: str
) -> None:
    """They are told apart before anything is asked."""
    outcome = integrations.call_task(task(action, kube, **parameters))
    assert isinstance(outcome, Failed)
    assert outcome.error == "States.Runtime"
    assert f"could not be used to start the Task: [{problem}" in (outcome.cause or "")
    assert kubernetes.find_problem(action, engine.loads(task(action, kube, **parameters).input))
    assert kube.seen == []


# -- who calls, and whom ---------------------------------------------------------------------------


def signature(url: str, cluster: str, secret: str) -> str:
    """Return what a presigned address must be signed with: Signature Version 4, by its rules."""
    where = urlsplit(url)
    query = where.query.partition("&X-Amz-Signature=")[0]
    scope = parse_qs(query)["X-Amz-Credential"][0].split("/", 1)[1]
    headers = f"host:{where.netloc}\nx-k8s-aws-id:{cluster}\n"
    body = hashlib.sha256(b"").hexdigest()
    ordered = "&".join(sorted(query.split("&")))
    request = f"GET\n/\n{ordered}\n{headers}\nhost;x-k8s-aws-id\n{body}"
    moment = parse_qs(query)["X-Amz-Date"][0]
    digest = hashlib.sha256(request.encode()).hexdigest()
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{digest}"
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def test_the_token_is_what_eks_wants(kube: Kube) -> None:
    """A question to STS who this is, signed for this cluster and for a minute."""
    integrations.call_task(task("call", kube, Method="GET", Path="/api"))
    token = kube.seen[0].headers["authorization"].removeprefix("Bearer k8s-aws-v1.")
    assert "=" not in token
    url = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
    where = urlsplit(url)
    assert (where.scheme, where.netloc, where.path) == ("https", "sts.us-east-1.amazonaws.com", "/")
    said = {name: values[0] for name, values in parse_qs(where.query).items()}
    assert (said["Action"], said["Version"]) == ("GetCallerIdentity", "2011-06-15")
    assert (said["X-Amz-Expires"], said["X-Amz-SignedHeaders"]) == ("60", "host;x-k8s-aws-id")
    assert said["X-Amz-Credential"].startswith("AKIDEXAMPLE/")
    assert said["X-Amz-Signature"] == signature(url, "blue", "hush")
    assert said["X-Amz-Signature"] != signature(url, "green", "hush")


def test_a_cluster_may_have_a_token_of_its_own(kube: Kube, settings: Any) -> None:
    """One that knows nothing of AWS, as in staging."""
    settings.STATEYARD_TARGETS = {"kubernetes": {"endpoints": [kube.url], "token": "abc"}}
    integrations.call_task(task("call", kube, Method="GET", Path="/api"))
    assert kube.seen[0].headers["authorization"] == "Bearer abc"


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"kubernetes": {}},
        {"kubernetes": {"endpoints": ["https://another"]}},
        {"http": {"endpoints": ["{url}"]}, "*": {"endpoint_url": "{url}"}},
        {"machines": {"other": {"kubernetes": {"endpoints": ["{url}"]}}}},
    ],
)
def test_a_cluster_that_nobody_named(kube: Kube, settings: Any, said: Any) -> None:
    """It is not called, and the cause says where it could be named."""
    text = engine.dumps(said).replace("{url}", kube.url)
    settings.STATEYARD_TARGETS = engine.loads(text)
    outcome = integrations.call_task(task("call", kube, Method="GET", Path="/api"))
    assert isinstance(outcome, Failed)
    assert outcome.error == "States.TaskFailed"
    assert f"'{kube.url}' is not among the endpoints of \"kubernetes\"" in (outcome.cause or "")
    assert kube.seen == []


def test_a_named_cluster_at_an_address_that_is_never_called(kube: Kube, settings: Any) -> None:
    """What outbound requests must not reach, no cluster is either."""
    for url in ("http://169.254.169.254", kube.url.replace("127.0.0.1", "127.1")):
        settings.STATEYARD_TARGETS = {"kubernetes": {"endpoints": [url], **KEYS}}
        outcome = integrations.call_task(
            task("call", kube, Endpoint=url, Method="GET", Path="/api")
        )
        assert isinstance(outcome, Failed)
        assert outcome.error == "EKS.SdkClientException"
    assert kube.seen == []


def test_only_the_clusters_own_authority_is_trusted(tmp_path: Path, settings: Any) -> None:
    """With it the cluster is called; with another, or what is none, it is not."""
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    with Kube(folders[0]) as cluster, Kube(folders[1]) as other:
        settings.STATEYARD_TARGETS = {"kubernetes": {"endpoints": [cluster.url], **KEYS}}
        asked = {"Method": "GET", "Path": "/api/v1/namespaces/default/pods"}
        assert read(integrations.call_task(task("call", cluster, **asked)))["StatusCode"] == 200
        own, cluster.authority = cluster.authority, other.authority
        refused = integrations.call_task(task("call", cluster, **asked))
        assert isinstance(refused, Failed)
        assert refused.error == "EKS.SdkClientException"
        assert "CERTIFICATE_VERIFY_FAILED" in (refused.cause or "")
        for none in ("no certificate", ""):
            cluster.authority = none
            unusable = integrations.call_task(task("call", cluster, **asked))
            assert isinstance(unusable, Failed)
            assert "'CertificateAuthority' has an invalid format" in (unusable.cause or "")
        cluster.authority = own
        assert len(cluster.seen) == 1


def test_a_token_that_is_no_header_is_not_told(kube: Kube, settings: Any) -> None:
    """What cannot be sent is not in the cause either."""
    said = {"endpoints": [kube.url], "token": "se\ncret"}
    settings.STATEYARD_TARGETS = {"kubernetes": said}
    outcome = integrations.call_task(task("call", kube, Method="GET", Path="/api"))
    assert isinstance(outcome, Failed)
    assert "cret" not in (outcome.cause or "")
    assert kube.seen == []


# -- eks:runJob ------------------------------------------------------------------------------------


def begun(kube: Kube, **parameters: Any) -> tuple[TaskAttempt, str]:
    """Return a job that is waited for, and what is kept of it."""
    asked = task("runJob", kube, ".sync", **{"Job": JOB, **parameters})
    outcome = integrations.call_task(asked)
    assert isinstance(outcome, Submitted), outcome
    return asked, outcome.job


def ended(asked: TaskAttempt, job: str) -> Any:
    """Look until a job has ended."""
    for _ in range(5):
        outcome = integrations.poll_job(asked, job)
        if outcome is not None:
            return outcome
    raise AssertionError("the job goes on")


def test_a_job_is_made(kube: Kube) -> None:
    """Without .sync the cluster's answer is the result; in the namespace that is named."""
    response = read(integrations.call_task(task("runJob", kube, Job=JOB, Namespace="batch")))
    assert (response["StatusCode"], response["StatusText"]) == (201, "Created")
    assert response["ResponseBody"]["metadata"]["namespace"] == "batch"
    (asked,) = kube.seen
    assert asked.path == "/apis/batch/v1/namespaces/batch/jobs"
    assert asked.body["spec"] == JOB["spec"]
    assert asked.body["metadata"]["labels"] == {"a": "b"}


@pytest.mark.parametrize(
    "job", [JOB, engine.dumps(JOB), JOB | {"metadata": {"generateName": "p-"}}]
)
def test_a_job_that_ends_well(kube: Kube, job: Any) -> None:
    """It is looked at until it is complete; the result is the job, without logs."""
    asked, submitted_job = begun(kube, Job=job)
    outcome = read(ended(asked, submitted_job))
    assert outcome["kind"] == "Job"
    assert outcome["status"]["conditions"][-1] == {"type": "Complete", "status": "True"}
    assert "logs" not in outcome
    assert len(kube.asked("GET")) == 2
    assert not kube.asked("DELETE")


def test_a_job_that_fails(kube: Kube) -> None:
    """The error is States.TaskFailed, the cause the job with its logs."""
    kube.ends, kube.logs = "Failed", {"pi-1": {"pi": "Boom"}}
    outcome = ended(*begun(kube, LogOptions={"RetrieveLogs": True}))
    assert isinstance(outcome, Failed)
    assert outcome.error == "States.TaskFailed"
    cause = engine.loads(outcome.cause or "")
    assert cause["logs"] == {"pods": {"pi-1": {"containers": {"pi": {"log": "Boom"}}}}}


@pytest.mark.slow
@pytest.mark.parametrize(("raw", "log"), [(False, {"pi": 3.14}), (True, '{"pi": 3.14}\n')])
def test_logs_come_along(kube: Kube, raw: bool, log: Any) -> None:
    """Of every container of every pod, parsed unless raw; one that cannot be had says why."""
    kube.logs = {"pi-1": {"pi": '{"pi": 3.14}\n', "proxy": 400}, "pi-2": {"pi": "not JSON"}}
    options = {"RetrieveLogs": True, "RawLogs": raw, "LogParameters": {"tailLines": ["6"]}}
    pods = read(ended(*begun(kube, LogOptions=options, Namespace="batch")))["logs"]["pods"]
    assert pods["pi-1"]["containers"]["pi"] == {"log": log}
    assert pods["pi-1"]["containers"]["proxy"]["error"] == "EKS.400"
    assert "waiting to start" in pods["pi-1"]["containers"]["proxy"]["cause"]
    assert pods["pi-2"]["containers"] == {"pi": {"log": "not JSON"}}
    (listed,) = [
        request for request in kube.asked("GET", "/pods") if not request.path.endswith("/log")
    ]
    assert listed.query == {"labelSelector": ["job-name=pi"]}
    assert {tuple(request.query["tailLines"]) for request in kube.asked("GET", "/log")} == {("6",)}
    assert all(
        request.path.startswith("/api/v1/namespaces/batch/")
        for request in kube.asked("GET", "/log")
    )


def test_a_cluster_that_is_busy_says_nothing_of_the_job(kube: Kube) -> None:
    """Throttling, trouble inside and no answer at all are asked about again."""
    asked, job = begun(kube)
    kube.broken = [429, 503]
    assert [integrations.poll_job(asked, job) for _ in range(2)] == [None, None]
    kube.server.socket.close()
    kube.server.shutdown()
    assert integrations.poll_job(asked, job) is None


def test_a_cluster_that_is_named_no_more(kube: Kube, settings: Any) -> None:
    """Its job cannot be looked at again: the task says so instead of waiting on."""
    asked, job = begun(kube)
    settings.STATEYARD_TARGETS = {}
    outcome = integrations.poll_job(asked, job)
    assert isinstance(outcome, Failed)
    assert outcome.error == "States.TaskFailed"


def test_an_answer_that_is_no_job(kube: Kube, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something stands before the cluster that answers for it."""
    monkeypatch.setattr(kube, "answer", lambda _: (200, "<html>Sign in</html>"))
    outcome = integrations.call_task(task("runJob", kube, ".sync", Job=JOB))
    assert isinstance(outcome, Failed)
    assert outcome.error == "EKS.SdkClientException"
    assert "Sign in" in (outcome.cause or "")


def test_a_job_that_somebody_deleted(kube: Kube) -> None:
    """There is nothing left to wait for."""
    asked, job = begun(kube)
    kube.jobs.clear()
    outcome = integrations.poll_job(asked, job)
    assert isinstance(outcome, Failed)
    assert outcome.error == "EKS.404"


def test_a_job_is_deleted_with_its_pods(kube: Kube) -> None:
    """When the execution is stopped; one that is gone already is well, too."""
    asked, job = begun(kube, Namespace="batch")
    for _ in range(2):
        assert isinstance(integrations.cancel_job(asked, job), Succeeded)
    assert kube.jobs == {}
    gone = kube.asked("DELETE")[0]
    assert gone.path == "/apis/batch/v1/namespaces/batch/jobs/pi"
    assert gone.query == {"propagationPolicy": ["Background"]}


def test_a_call_that_is_made_again_finds_its_job(kube: Kube) -> None:
    """The same attempt, after a crash, does not meet its own job as somebody else's."""
    begun(kube)
    again, job = begun(kube)
    read(ended(again, job))
    assert len(kube.jobs) == 1
    other = integrations.call_task(task("runJob", kube, ".sync", key="key-2", Job=JOB))
    assert isinstance(other, Failed)
    assert (other.error, other.refused) == ("EKS.409", True)


# -- what is said of it beforehand -----------------------------------------------------------------


def test_a_plan_says_which_cluster_is_called(kube: Kube, settings: Any) -> None:
    """Its address, who names it and as whom it is called; never a secret."""
    parsed = engine.parse_resource("arn:aws:states:::eks:call")
    assert parsed is not None
    parameters = {"Endpoint": kube.url, "Method": "GET", "Path": "/api"}
    plan = explain.plan_call(parsed, parameters, targets.MachineKey("default", "m"))
    assert (plan.callee, plan.where, plan.entry) == ("kubernetes GET /api", kube.url, "kubernetes")
    assert plan.credentials == "a key in targets.json"
    assert "hush" not in str(plan)
    run = engine.parse_resource("arn:aws:states:::eks:runJob.sync")
    assert run is not None
    assert (
        explain.plan_call(run, {}, targets.MachineKey("default", "m")).then
        == "waits for the job's end"
    )
    settings.STATEYARD_TARGETS = {}
    assert (
        "no cluster may be called"
        in explain.plan_call(parsed, parameters, targets.MachineKey("default", "m")).problem
    )
