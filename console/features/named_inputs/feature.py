"""Declare the feature: inputs saved under a name, offered in the start form."""

from console.feature import Feature, Hook

FEATURE = Feature(
    name="named_inputs",
    urls="console.features.named_inputs.urls",
    pages={
        "inputs": {"GET": ("ViewPages",), "POST": ("PutNamedInput", "DeleteNamedInput")},
        # signed calls: the view says who may make them
        "api-inputs": {"GET": ("anybody",), "POST": ("anybody",)},
    },
    rights={
        "viewer": ("ListNamedInputs",),
        "operator": ("PutNamedInput", "DeleteNamedInput", "GetNamedInput"),
    },
    parameters={"api-inputs": ("machine", "name")},
    hooks={Hook.START_INPUTS: "console.features.named_inputs.offered.offered_inputs"},
)
