"""Declare the feature: a report on Retriers, Catchers and timeouts, tried with injected errors."""

from console.feature import Feature

FEATURE = Feature(
    name="resilience",
    urls="console.features.resilience.urls",
    pages={"resilience": {"GET": ("ViewPages",)}},
)
