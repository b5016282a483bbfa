"""Doctor: check what the engine promises of its rows."""

from console.feature import Feature

FEATURE = Feature(
    name="doctor",
)
