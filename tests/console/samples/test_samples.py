"""The samples are sound and show the features that they are meant to show."""

from __future__ import annotations

import importlib
import json

import pytest
from django.conf import settings

import engine
from console.samples import MACHINES, SampleMachine

ORDER = next(machine for machine in MACHINES if machine.name == "OrderProcessing")


@pytest.mark.parametrize("sample", MACHINES, ids=lambda sample: sample.name)
def test_a_sample_has_no_problem(sample: SampleMachine) -> None:
    """Every definition is accepted without so much as a warning, every input is JSON."""
    assert engine.check(sample.definition) == []
    engine.loads(sample.input)
    assert sample.description.endswith(".")


@pytest.mark.parametrize("sample", MACHINES, ids=lambda sample: sample.name)
def test_every_function_of_a_sample_exists(sample: SampleMachine) -> None:
    """Each Task leads to a callable that is registered under its name."""
    for node in engine.build_graph(engine.parse(sample.definition)).nodes:
        if node.type != "Task":
            continue
        kind, _, name = node.detail.partition(": ")
        place = settings.STATEYARD_SAMPLE_FUNCTIONS[
            f"activity:{name}" if kind == "activity" else name
        ]
        module, _, function = place.partition(":")
        assert callable(getattr(importlib.import_module(module), function))


def test_the_order_sample_uses_the_whole_language() -> None:
    """Fifteen states or more, with every type, Retry and Catch."""
    nodes = engine.build_graph(engine.parse(ORDER.definition)).nodes
    assert len(nodes) >= 15
    types = {"Choice", "Fail", "Map", "Parallel", "Pass", "Succeed", "Task", "Wait"}
    assert {node.type for node in nodes} == types
    text = json.dumps(json.loads(ORDER.definition))
    assert '"Retry"' in text
    assert '"Catch"' in text
