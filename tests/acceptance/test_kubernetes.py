"""Jobs in a Kubernetes cluster run, fail and end with the executions that wait for them."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.aws import KEYS
from tests.acceptance.kube import Kube
from tests.acceptance.server import Server, wait_for_end
from tests.acceptance.test_jobs import definition, kinds, start
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.acceptance
JOB = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "pi"}, "spec": {}}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Kube]]:
    """A server, and a cluster with TLS that it may call."""
    folder = tmp_path_factory.mktemp("kube")
    with Kube(folder) as cluster:
        targets = json.dumps({"kubernetes": {"endpoints": [cluster.url], **KEYS}})
        server = Server(folder / "data", STATEYARD_TARGETS=targets).start()
        yield server, cluster
        server.stop()


@pytest.fixture
def kube(running: tuple[Server, Kube]) -> Kube:
    """The cluster, as if it were new."""
    cluster = running[1]
    cluster.ends, cluster.logs = "Complete", {}
    for records in (cluster.jobs, cluster.looks, cluster.seen, cluster.broken):
        records.clear()
    return cluster


@pytest.fixture
def sfn(running: tuple[Server, Kube]) -> Any:
    """A client of the server."""
    return running[0].client()


def about(kube: Kube, **more: Any) -> dict[str, Any]:
    """Return the parameters of a state that asks the cluster."""
    authority = base64.b64encode(kube.authority.encode()).decode()
    return {
        "ClusterName": "blue",
        "CertificateAuthority": authority,
        "Endpoint": kube.url,
        **more,
    }


def test_a_job_with_its_logs(sfn: Any, kube: Kube) -> None:
    """The documentation's sample picks what the container wrote from the result."""
    kube.logs = {"pi-1": {"pi-20": '{ "pi": 3.1415 }'}}
    picked = {"status.$": "$.status", "logs.$": "$.logs..pi"}
    parameters = about(kube, LogOptions={"RetrieveLogs": True}, Job=JOB)
    machine = definition("eks:runJob.sync", parameters, ResultSelector=picked)
    execution = start(sfn, machine)
    ended = wait_for_end(sfn, execution)
    assert ended["status"] == "SUCCEEDED", ended
    assert json.loads(ended["output"])["logs"] == [3.1415]
    assert kinds(sfn, execution)[2:6] == [
        *("TaskScheduled", "TaskStarted", "TaskSubmitted", "TaskSucceeded")
    ]
    assert len(kube.jobs) == 1


@pytest.mark.parametrize("how", ["stop", "timeout"])
def test_a_job_that_nobody_waits_for_is_deleted(sfn: Any, kube: Kube, how: str) -> None:
    """StopExecution and the state's time both end it in the cluster."""
    kube.ends = ""
    more = {"TimeoutSeconds": 15} if how == "timeout" else {}  # time for the first look
    execution = start(sfn, definition("eks:runJob.sync", about(kube, Job=JOB), **more))
    wait_until(lambda: kube.asked("GET"))
    if how == "stop":
        sfn.stop_execution(executionArn=execution)
    wait_until(lambda: kube.asked("DELETE"))
    assert kube.jobs == {}


def test_a_name_that_is_taken_is_retried(sfn: Any, kube: Kube) -> None:
    """The error can be named in Retry; the event says that the job never began."""
    kube.jobs["default", "pi"] = {"metadata": {}}
    retry = [{"ErrorEquals": ["EKS.409"], "IntervalSeconds": 1, "MaxAttempts": 3}]
    execution = start(sfn, definition("eks:runJob.sync", about(kube, Job=JOB), Retry=retry))
    wait_until(lambda: kube.asked("POST"))
    kube.jobs.clear()
    assert wait_for_end(sfn, execution)["status"] == "SUCCEEDED"
    assert kinds(sfn, execution)[4:7] == ["TaskSubmitFailed", "TaskScheduled", "TaskStarted"]


def test_a_call_deletes_a_job(sfn: Any, kube: Kube) -> None:
    """``eks:call`` deletes a job by the path that the state names."""
    kube.jobs["default", "pi"] = {"metadata": {}}
    path = "/apis/batch/v1/namespaces/default/jobs/pi"
    asked = about(kube, Method="DELETE", Path=path)
    picked = {"status.$": "$.ResponseBody.status"}
    ended = wait_for_end(sfn, start(sfn, definition("eks:call", asked, ResultSelector=picked)))
    assert json.loads(ended["output"]) == {"status": "Success"}
    assert kube.jobs == {}
