"""Role rehearsal for state machines in files, for ``lint``, ``deploy`` and ``role``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import engine
from console.cli.account import Account
from console.cli.documents import SourceError, load_document
from console.cli.output import write_error
from console.features.deploy.discovery import read_paths
from console.features.deploy.lint_sources import without_bare_placeholders
from console.features.deploy.parameters import Parameters
from console.features.roles.evaluation import (
    PolicyError,
    RoleAccount,
    RoleSource,
    RoleVerdict,
    examine,
    grouped_words,
    needs_of,
    parse_policy,
)
from console.features.roles.files.options import RoleMode

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from console.features.deploy.sources import MachineSource
    from console.features.roles.evaluation import Need, RoleReport

UNKNOWN_ACCOUNT = RoleAccount()
"""Placeholder account and region of a file: equal only to the placeholders in its policies."""


def read_policies(files: Sequence[Path]) -> RoleSource | None:
    """Return a role with the policies of files, None without files; raise ``SourceError``."""
    documents = [(str(path), load_document(path)) for path in files]
    try:
        for place, document in documents:
            parse_policy(document, place)
    except PolicyError as error:
        raise SourceError(str(error)) from None
    return RoleSource("--policy", tuple(documents)) if documents else None


def read_role_options(options: Namespace) -> tuple[RoleMode, RoleSource | None]:
    """Return mode and policies of a command; raise ``SourceError`` for unused policies."""
    mode = RoleMode(options.role)
    if mode is RoleMode.OFF and options.policy:
        raise SourceError("--policy: got --role off, wanted report or enforce")
    return mode, read_policies(options.policy)


def is_rehearsed(machine: MachineSource, mode: RoleMode, policies: RoleSource | None) -> bool:
    """Return whether a command reports on the role of a state machine.

    Without policies there is only the note that nothing was checked, for ``enforce``.
    """
    return bool(policies or machine.policies) or mode is RoleMode.ENFORCE


def role_machines(
    paths: Sequence[Path],
    values: Mapping[str, str],
    mode: RoleMode,
    policies: RoleSource | None,
) -> list[MachineSource]:
    """Return the state machines of files whose role is rehearsed.

    ``policies``: of the command. Unreadable files are skipped: lint has reported them.
    """
    account = Account(UNKNOWN_ACCOUNT.number, UNKNOWN_ACCOUNT.region, UNKNOWN_ACCOUNT.partition)
    machines = []
    for path in paths:
        try:
            project = read_paths([path], account, Parameters(values, placeholders=True))
            for machine in project.machines:
                if is_rehearsed(machine, mode, policies):
                    needs_of_machine(machine, UNKNOWN_ACCOUNT)
                    machines.append(machine)
        except SourceError:
            continue
    return machines


def account_of(account: Account) -> RoleAccount:
    """Return the account of a deployment, for ARNs."""
    return RoleAccount(account.number, account.region, account.partition)


def needs_of_machine(machine: MachineSource, account: RoleAccount) -> list[Need]:
    """Return the permissions of a state machine; raise ``SourceError`` for invalid JSON."""
    text = without_bare_placeholders(machine.definition)
    try:
        return needs_of(text, machine.name, account, machine.options)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{machine.place}: no definition: {error}") from None


def rehearse(
    machines: Iterable[MachineSource], policies: RoleSource | None, account: RoleAccount
) -> list[RoleReport]:
    """Return a report for each state machine. ``policies``: instead of those in the files."""
    return [
        examine(
            needs_of_machine(machine, account),
            policies or machine.policies,
            machine.name,
            machine.place,
        )
        for machine in machines
    ]


def failure_words(report: RoleReport) -> list[str]:
    """Return a line for each missing or denied permission."""
    role = report.role.name if report.role else ""
    return [
        f"role {role}: {verdict}: {line}"
        for verdict in (RoleVerdict.MISSING, RoleVerdict.DENIED)
        for line in grouped_words(report.of_verdict(verdict))
    ]


def role_problems(report: RoleReport, severity: engine.Severity) -> list[engine.Diagnostic]:
    """Return missing and denied permissions as problems of the definition."""
    code = engine.DiagnosticCode.MISSING_PERMISSION
    return [engine.Diagnostic(severity, code, line) for line in failure_words(report)]


def unknown_words(report: RoleReport) -> str:
    """Return a line about unknown permissions and unread policies, "" without any."""
    count = len(report.of_verdict(RoleVerdict.UNKNOWN))
    if report.role is None:
        return "role: its policies are not in the files: no permission was checked" * bool(count)
    if not count:
        gaps = "; ".join(report.role.gaps)
        return f"role {report.role.name}: unread policies may deny calls: {gaps}" if gaps else ""
    kind = "permission is" if count == 1 else "permissions are"
    return f"role {report.role.name}: {count} {kind} not known; `stateyard role` lists them"


def warn_of_roles(reports: Iterable[RoleReport], *, all_lines: bool = True) -> int:
    """Print missing permissions and notes on unknown ones; return the number of missing ones.

    ``all_lines``: False prints only the notes, because a report has the rest.
    """
    missing = 0
    for report in reports:
        lines = failure_words(report)
        missing += len(lines)
        for line in lines if all_lines else ():
            write_error(f"warning: {report.place}: {line}")
        words = unknown_words(report)
        if words:
            write_error(f"note: {report.place}: {words}")
    return missing
