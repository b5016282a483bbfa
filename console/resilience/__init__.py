"""Resilience: try the Retriers, Catchers and timeouts of a state machine, and name weaknesses.

``examine`` runs a definition in memory, with errors in place of answers and a clock that skips the
waiting. It calls no service and needs no server.
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
