"""Resilience: test the Retriers, Catchers and timeouts of a definition, and report weaknesses.

``examine`` runs a definition in memory with injected errors and a virtual clock. It calls no
service and needs no server. The command ``stateyard resilience`` and a page show its report.
"""

from console.features.resilience.trials.rehearsal import Rehearsal, read_rehearsal
from console.features.resilience.trials.report import Report, examine
from console.features.resilience.trials.trials import ResilienceTrial, TrialOutcome
from console.features.resilience.trials.weaknesses import Weakness
from console.features.resilience.trials.writing import WRITERS

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
