"""The sample state machines that a new installation gets.

Definitions are files of this package; ``MACHINES`` has the name, a description and an example input
of each. Their functions (``console.samples.functions``) only serve executions with the samples'
role, so that no other state machine calls them by accident.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from django.db.models import Q

PROJECT = "samples"
"""Name of the project with a new installation's samples."""
ROLE_END = ":role/stateyard-samples"
"""End of the role ARN that marks state machines as samples."""
_FORMER_ROLE_END = ":role/stepyard-samples"  # of samples made before 0.3.0


def sample_role(account: str) -> str:
    """Return the ARN of the role that marks state machines as samples."""
    return f"arn:aws:iam::{account}{ROLE_END}"


def is_sample(role_arn: str) -> bool:
    """Return whether a role is that of the samples.

    A state machine counts as a sample until it gets another role; changes of its definition do not
    matter.
    """
    return role_arn.endswith((ROLE_END, _FORMER_ROLE_END))


def samples_condition(field: str) -> Q:
    """Return the query condition that a role ARN column has the samples' role."""
    return Q(**{f"{field}__endswith": ROLE_END}) | Q(**{f"{field}__endswith": _FORMER_ROLE_END})


@dataclass(frozen=True, slots=True)
class SampleMachine:
    """One sample. ``file``: its definition in this package; ``value``: an example input."""

    name: str
    file: str
    description: str
    value: Any = None

    @property
    def definition(self) -> str:
        """Return the definition's text."""
        return files(__name__).joinpath(f"{self.file}.asl.json").read_text(encoding="utf-8")

    @property
    def input(self) -> str:
        """Return the example input as indented JSON text."""
        value = {} if self.value is None else self.value
        return json.dumps(value, indent=2, ensure_ascii=False)


_ORDER = {
    "orderId": "4711",
    "region": "Europe",
    "customer": {"name": "Ana", "email": "ana@example.com", "regular": True},
    "items": [
        {"sku": "A-123", "quantity": 2},
        {"sku": "B-456", "quantity": 1, "fragile": True},
        {"sku": "C-789", "quantity": 5},
    ],
    "card": {"number": "4242"},
    "total": 130,
}

MACHINES: tuple[SampleMachine, ...] = (
    SampleMachine("HelloWorld", "hello-world", "One Pass state that answers a greeting."),
    SampleMachine(
        "LookupCustomerInfo",
        "lookup-customer-info",
        "Looks up address and phone number of a customer at the same time.",
        {"customerId": "C-1001"},
    ),
    SampleMachine(
        "FunWithMath",
        "fun-with-math",
        "Two activities work in parallel: the sum and the difference of two numbers.",
        [3, 2],
    ),
    SampleMachine(
        "MapRetryWhole",
        "map-retry-whole",
        "A Map whose Retry starts all items again until the random one succeeds.",
    ),
    SampleMachine(
        "MapRetryFailedItems",
        "map-retry-failed-items",
        "A Map that succeeds, and a second Map over the items that failed.",
    ),
    SampleMachine("ParallelWaits", "parallel-waits", "Two branches wait 20 and 10 seconds."),
    SampleMachine("PutMessage", "put-message", "One Task that stores a message."),
    SampleMachine("Wait", "wait", "Waits 20 seconds, then stores a message."),
    SampleMachine(
        "ShowAxis", "show-axis", "A Pass state adds a fixed result to its input.", {"name": "x"}
    ),
    SampleMachine("Choice", "choice", "Succeeds when choice is 1, fails otherwise.", {"choice": 1}),
    SampleMachine(
        "Retry", "retry", "A branch that always fails is retried four times, 45 seconds in all."
    ),
    SampleMachine("Catch", "catch", "A branch that always fails is caught by a fallback state."),
    SampleMachine(
        "CreateAccount",
        "create-account",
        "A function's exception (the account exists already) is caught by its name.",
        {"user": "ana"},
    ),
    SampleMachine(
        "VendingMachine",
        "vending-machine",
        "Pays out drink and change in parallel once the deposit is enough.",
        {"deposit": 200, "drink": {"name": "Green tea", "price": 150}},
    ),
    SampleMachine(
        "OrderProcessing",
        "order-processing",
        "An order from the check of its items to its delivery: Choice, Parallel, Map, Catch.",
        _ORDER,
    ),
)
