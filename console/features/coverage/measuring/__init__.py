"""Coverage of state machines: collect what executions reached, and report what they did not.

``Collection`` merges histories and result files. ``make_reports`` compares it with the points of
each definition (``engine.coverage``) and with thresholds. ``WRITERS`` formats the reports. Used by
``stateyard coverage`` and the pytest plugin; no server is needed.
"""

from console.features.coverage.measuring.collection import (
    Collection,
    CoverageFileError,
    MachineCoverage,
    read_events,
)
from console.features.coverage.measuring.report import CoverageReport, Thresholds, make_reports
from console.features.coverage.measuring.writing import WRITERS

__all__ = [
    "WRITERS",
    "Collection",
    "CoverageFileError",
    "CoverageReport",
    "MachineCoverage",
    "Thresholds",
    "make_reports",
    "read_events",
]
