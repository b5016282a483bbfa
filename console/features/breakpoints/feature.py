"""Breakpoints of an execution, on a page of their own."""

from console.feature import Feature

_DEBUG = ("DebugExecution",)

FEATURE = Feature(
    name="breakpoints",
    urls="console.features.breakpoints.urls",
    pages={"breakpoints": {"GET": _DEBUG, "POST": _DEBUG}},
    rights={"editor": _DEBUG},
)
