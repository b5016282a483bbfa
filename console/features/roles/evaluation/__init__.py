"""Role rehearsal: compare the IAM permissions that a definition needs with its role's policies.

``needs_of`` lists the IAM actions and resources of all calls of a definition. ``examine`` evaluates
a role's policies for each of them. Both are pure. The page of a state machine, the commands
``lint``, ``deploy`` and ``role``, and ``review`` use them.

Some values are unknown before a run: an ARN computed by JSONata, or ``${Name}`` of a template. They
are *holes* in a text, so each comparison has three outcomes: always, never, maybe. A permission
that may be allowed is *unknown*, with its reason, and counts neither as allowed nor as missing.
"""

from console.features.roles.evaluation.calls import RoleCall, call_needs
from console.features.roles.evaluation.managed import managed_policy
from console.features.roles.evaluation.needs import Need, RoleAccount, RoleOptions, needs_of
from console.features.roles.evaluation.patterns import count_holes, plain_text
from console.features.roles.evaluation.policies import (
    PolicyError,
    PolicyStatement,
    RoleSource,
    parse_policy,
    parse_role,
    readable_role,
)
from console.features.roles.evaluation.reports import (
    RoleReport,
    UnusedAction,
    examine,
    least_policy,
)
from console.features.roles.evaluation.verdicts import Decision, RoleVerdict, decide
from console.features.roles.evaluation.writing import WRITERS, grouped_words, resource_words

__all__ = [
    "WRITERS",
    "Decision",
    "Need",
    "PolicyError",
    "PolicyStatement",
    "RoleAccount",
    "RoleCall",
    "RoleOptions",
    "RoleReport",
    "RoleSource",
    "RoleVerdict",
    "UnusedAction",
    "call_needs",
    "count_holes",
    "decide",
    "examine",
    "grouped_words",
    "least_policy",
    "managed_policy",
    "needs_of",
    "parse_policy",
    "parse_role",
    "plain_text",
    "readable_role",
    "resource_words",
]
