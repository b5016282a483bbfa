"""Doctor: check a deployment, and the invariants of the engine's rows."""

from console.feature import Feature

FEATURE = Feature(
    name="doctor",
)
