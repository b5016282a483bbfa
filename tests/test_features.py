"""What can be left out is a feature, a feature is one folder, and the core imports no feature."""

from __future__ import annotations

from tests.architecture import dotted
from tests.test_architecture import imports, modules

FEATURES = "console.features."
OUTSIDE = ("console.migrations", "console.features")
"""No part of the core: migrations keep names of their time."""


def test_the_core_imports_no_feature() -> None:
    """What a feature adds comes in by the door, ``console.feature``."""
    crossings = {
        (dotted(path), name)
        for path in modules("console")
        if not dotted(path).startswith(OUTSIDE)
        for name in imports(path)
        if name.startswith(FEATURES) and name != "console.features.NAMES"
    }
    assert sorted(crossings) == []
