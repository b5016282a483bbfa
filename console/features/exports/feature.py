"""Declare the feature: downloads of executions and graphs, and links that share a graph."""

from console.feature import Feature, Hook

_EVENTS = ("order", "since", "state", "text", "type", "until")
_READ = {"GET": ("ViewPages",)}

FEATURE = Feature(
    name="exports",
    urls="console.features.exports.urls",
    pages={
        "machine-export": _READ,
        "machine-svg": _READ,
        "machine-mermaid": _READ,
        "events-csv": _READ,
        "events-json": _READ,
        "execution-export": _READ,
        "execution-svg": _READ,
        "outline": _READ,
        "share": {"GET": ("SharePicture",), "POST": ("SharePicture",)},
        "shared": {"GET": ("anybody",)},  # the token is the right
    },
    rights={"operator": ("SharePicture",)},
    hooks={Hook.DEFINITION_PAGE: "console.features.exports.views.offered_formats"},
    parameters={
        "machine-export": ("region",),
        "machine-svg": ("region", "unfold"),
        "machine-mermaid": ("region",),
        "events-csv": (*_EVENTS, "region"),
        "events-json": (*_EVENTS, "region"),
        "execution-export": ("region",),
        "execution-svg": ("at", "region", "unfold"),
        "outline": ("region",),
        "shared": (),
    },
)
