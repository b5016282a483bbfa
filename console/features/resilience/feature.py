"""Resilience: Retriers, Catchers and timeouts of a state machine, tried with injected errors."""

from console.feature import Feature

FEATURE = Feature(
    name="resilience",
    urls="console.features.resilience.urls",
    pages={"resilience": {"GET": ("ViewPages",)}},
)
