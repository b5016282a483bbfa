"""Policies of a template's roles with a value that cannot be resolved."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.features.roles.test_command import (
    FOLLOW,
    NOTHING,
    RULE,
    START,
    cloudformation,
    policy,
    run,
    sam,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SELECT = {"Fn::Select": [9, ["a"]]}
"""A value that is not there."""
DENY_ALL = "arn:aws:iam::aws:policy/AWSDenyAll"
INLINE = {"PolicyName": "p", "PolicyDocument": policy(START, FOLLOW, RULE)}
PARAMETER = {"Ref": "Arns"}


def attached(**properties: Any) -> dict[str, Any]:
    """Return a policy resource that allows all calls."""
    return {"Type": "AWS::IAM::Policy", "Properties": {**INLINE, **properties}}


@pytest.mark.parametrize(
    ("role", "attachment", "verdict", "gap"),
    [
        ({"ManagedPolicyArns": [DENY_ALL, SELECT]}, None, "denied", "Role: ManagedPolicyArns[1]"),
        (
            {"Policies": [INLINE], "ManagedPolicyArns": ["AdministratorAccess", SELECT]},
            None,
            "allowed",
            "Role: ManagedPolicyArns[1]",
        ),
        ({"ManagedPolicyArns": [SELECT]}, None, "unknown", "Role: ManagedPolicyArns[0]"),
        ({"ManagedPolicyArns": SELECT}, None, "unknown", "Role: ManagedPolicyArns"),
        ({"ManagedPolicyArns": PARAMETER}, None, "unknown", "Role: ManagedPolicyArns"),
        ({"Policies": [INLINE, SELECT]}, None, "allowed", "Role: Policies[1]"),
        ({"Policies": [NOTHING, SELECT]}, None, "unknown", "Role: Policies[1]"),
        ({}, attached(Roles=[{"Ref": "Role"}], PolicyName=SELECT), "allowed", None),
        ({}, attached(Roles=[SELECT, {"Ref": "Role"}]), "allowed", None),
        ({}, attached(Roles=[SELECT, "other"]), "unknown", "Attached: Roles[0]"),
        ({}, attached(RoleName=SELECT), "unknown", "Attached: RoleName"),
        ({}, attached(Roles=["other"]), "missing", None),
    ],
)
def test_one_value_with_an_error_hides_no_other_policy(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    role: dict[str, Any],
    attachment: dict[str, Any] | None,
    verdict: str,
    gap: str | None,
) -> None:
    """The other entries of a list count, and the report names the entry as not read."""
    template = cloudformation()
    resources = template["Resources"]
    template["Parameters"] = {"Arns": {"Type": "CommaDelimitedList"}}
    resources["Role"]["Properties"] = {"AssumeRolePolicyDocument": {}, **role}
    del resources["RoleDefaultPolicy"]
    if attachment:
        resources["Attached"] = attachment
    path = write(tmp_path / "template.json", template)
    (report,) = json.loads(run(capsys, "role", path, "--format", "json")[1])
    assert {each["verdict"] for each in report["permissions"]} == {verdict}
    named = [line for line in report["gaps"] if "the value cannot be resolved" in line]
    assert [f"{path}: {gap}: " in line for line in named] == ([True] if gap else [])


@pytest.mark.parametrize(
    "boundary", [{"Fn::If": ["Nope", "a", "b"]}, SELECT, {"Fn::Join": ["a"]}], ids=str
)
@pytest.mark.parametrize("layout", [cloudformation, sam])
def test_a_boundary_with_an_error_may_forbid_all(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    boundary: dict[str, Any],
    layout: Callable[..., dict[str, Any]],
) -> None:
    """It is no absent boundary: every permission is unknown, and the report says so."""
    template = layout(START, FOLLOW, RULE)
    resource = "Flow" if layout is sam else "Role"
    template["Resources"][resource]["Properties"]["PermissionsBoundary"] = boundary
    path = write(tmp_path / "template.json", template)
    (report,) = json.loads(run(capsys, "role", path, "--format", "json")[1])
    assert {each["verdict"] for each in report["permissions"]} == {"unknown"}
    place = f"{path}: {resource}: PermissionsBoundary"
    assert report["gaps"] == [f"{place}: the value cannot be resolved, which may forbid more"]


@pytest.mark.parametrize(
    ("policies", "verdict", "gap"),
    [
        ([policy(START, FOLLOW, RULE), SELECT], "allowed", "Policies[1]"),
        ([SELECT, "AWSDenyAll"], "denied", "Policies[0]"),
        (SELECT, "unknown", "Policies"),
    ],
)
def test_policies_of_sam_with_an_error(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    policies: Any,
    verdict: str,
    gap: str,
) -> None:
    """The other policies count, and the report names the entry as not read."""
    template = sam()
    template["Resources"]["Flow"]["Properties"]["Policies"] = policies
    path = write(tmp_path / "template.json", template)
    (report,) = json.loads(run(capsys, "role", path, "--format", "json")[1])
    assert {each["verdict"] for each in report["permissions"]} == {verdict}
    assert report["gaps"] == [f"{path}: Flow: {gap}: the value cannot be resolved"]


@pytest.mark.parametrize("condition", ["Nowhere", ["a", "b"]])
def test_a_policy_with_an_undefined_condition(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], condition: Any
) -> None:
    """Whether it holds is unknown: so is each permission, and lint says so."""
    template = cloudformation(START, FOLLOW, RULE)
    template["Resources"]["Attached"] = attached(Roles=["other"]) | {"Condition": condition}
    path = write(tmp_path / "template.json", template)
    (report,) = json.loads(run(capsys, "role", path, "--format", "json")[1])
    assert {each["verdict"] for each in report["permissions"]} == {"unknown"}
    (gap,) = report["gaps"]
    assert f"Condition {condition}: got none of that name" in gap
    assert "permissions are not known" in run(capsys, "lint", path)[2]
