"""Resilience: test the Retriers, Catchers and timeouts of a definition, and report weaknesses.

``examine`` runs a definition in memory with injected errors and a virtual clock. It calls no
service and needs no server. The command ``stateyard resilience`` and a page show its report.
"""

from console.resilience.rehearsal import Rehearsal, read_rehearsal
from console.resilience.report import Report, examine
from console.resilience.trials import ResilienceTrial, TrialOutcome
from console.resilience.weaknesses import Weakness
from console.resilience.writing import WRITERS

__all__ = [
    "WRITERS",
    "Rehearsal",
    "Report",
    "ResilienceTrial",
    "TrialOutcome",
    "Weakness",
    "examine",
    "read_rehearsal",
]
