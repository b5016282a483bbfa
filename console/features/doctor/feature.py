"""Doctor: check a deployment, and what the engine promises of its rows."""

from console.feature import Feature

FEATURE = Feature(
    name="doctor",
)
