"""Declare the feature: reproduce imported executions, on a page of each."""

from console.feature import Feature

FEATURE = Feature(
    name="reproduce",
    urls="console.features.reproduce.urls",
    pages={"reproduce": {"GET": ("StartExecution",), "POST": ("StartExecution",)}},
)
