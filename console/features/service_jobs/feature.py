"""Declare the feature: ``.sync`` jobs of AWS services, Tasks of EMR, and calls of clusters."""

from console.feature import Feature, Hook

FEATURE = Feature(
    name="service_jobs",
    hooks={Hook.SERVICE_JOBS: "console.features.service_jobs.integrations.service_jobs"},
)
