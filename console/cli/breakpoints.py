"""Read the breakpoints of ``--break-at``, as the server's own HTTP API takes them."""

from __future__ import annotations

import json
from argparse import Action, ArgumentError
from typing import TYPE_CHECKING, Any

import engine

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _ActionsContainer
    from collections.abc import Iterable

    from console.cli.connection import Connection

_IF = " if "
_ARN_PARTS = 7  # arn:aws:states:REGION:ACCOUNT:stateMachine:NAME, then a version or an alias


class _AddBreakpoint(Action):
    """Append the breakpoint of ``--break-at`` to ``break_at``."""

    def __call__(
        self, parser: ArgumentParser, namespace: Namespace, values: Any, option_string: Any = None
    ) -> None:
        """Append to a copy, because the parser shares the default list."""
        del parser, option_string
        namespace.break_at = [*namespace.break_at, {"state": values}]


class _SetMember(Action):
    """Set a member of the preceding breakpoint: ``--break-hits`` sets ``hits``."""

    def __call__(
        self, parser: ArgumentParser, namespace: Namespace, values: Any, option_string: Any = None
    ) -> None:
        """Refuse an option without a preceding breakpoint, and a repeated option."""
        del parser, option_string
        member = self.dest.removeprefix("break_")
        if not namespace.break_at:
            raise ArgumentError(self, "must follow a --break-at")
        *others, last = namespace.break_at
        if member in last:
            raise ArgumentError(self, f"repeated for the breakpoint at {last['state']}")
        namespace.break_at = [*others, {**last, member: values}]


def add_breakpoint_arguments(parser: ArgumentParser, exclusive: _ActionsContainer) -> None:
    """Add ``--break-at`` to a group of exclusive options, and the options of a breakpoint."""
    exclusive.add_argument(
        "--break-at",
        action=_AddBreakpoint,
        default=[],
        metavar="STATE",
        help="stop before this state until somebody continues; 'STATE if CONDITION' stops if the"
        " JSONata condition over $states and variables is true; may be repeated",
    )
    parser.add_argument(
        "--break-when",
        action=_SetMember,
        choices=[str(when) for when in engine.BreakTime],
        help="when the preceding --break-at stops: before the state (the default), after its"
        " success, or when an error reaches it",
    )
    parser.add_argument(
        "--break-hits",
        action=_SetMember,
        type=int,
        metavar="N",
        help="the hit at which the preceding --break-at begins to stop (default: 1)",
    )


def breakpoints_text(
    connection: Connection, arn: str, breakpoints: Iterable[dict[str, Any]]
) -> str:
    """Return breakpoints as JSON text, with each ``STATE if CONDITION`` split into its members.

    ``arn``: of the state machine, a version or an alias. Its definition is read from the server to
    tell a condition from a name that contains " if ".
    """
    return json.dumps(
        [each | _state_and_condition(connection, arn, each["state"]) for each in breakpoints]
    )


def _state_and_condition(connection: Connection, arn: str, text: str) -> dict[str, str]:
    """Return the members of ``STATE`` or ``STATE if CONDITION``."""
    if _IF not in text:
        return {"state": text}
    # The name of a state may contain " if ", as in "Check if paid".
    machine = ":".join(arn.split(":")[:_ARN_PARTS])
    answer = connection.states.describe_state_machine(stateMachineArn=machine)
    names = {name for name, _ in engine.own_states(engine.parse_stored(answer["definition"]))}
    parts = text.split(_IF)
    for count in range(len(parts), 0, -1):
        state, condition = _IF.join(parts[:count]), _IF.join(parts[count:])
        if state in names:
            return {"state": state, "condition": condition} if condition else {"state": state}
    return {"state": parts[0], "condition": _IF.join(parts[1:])}
