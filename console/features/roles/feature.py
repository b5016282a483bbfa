"""Declare the feature: compare the policies of a state machine's role with its calls."""

from console.feature import Feature

FEATURE = Feature(
    name="roles",
    urls="console.features.roles.urls",
    pages={"role": {"GET": ("ViewPages",), "POST": ("PutProjectSetting", "RemoveProjectSetting")}},
)
