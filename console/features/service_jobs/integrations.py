"""Connect the feature with the core's integrations."""

from __future__ import annotations

from functools import cache

from console.features.service_jobs import emr, kubernetes
from console.features.service_jobs.table import JOBS
from console.integrations.jobs import ServiceJobs


@cache
def service_jobs() -> ServiceJobs:
    """Return the calls, checks and jobs that the feature adds to the integrations."""
    return ServiceJobs(
        calls={"eks": kubernetes.call, "elasticmapreduce": emr.call},
        problems={"eks": kubernetes.parameter_problem, "elasticmapreduce": emr.parameter_problem},
        jobs=JOBS,
        runners={("eks", "runJob"): kubernetes},
    )
