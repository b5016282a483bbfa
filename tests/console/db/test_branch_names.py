"""A branch of a repository has the name of a project, always the same, and of no other branch."""

from __future__ import annotations

import re

import pytest

from console.db import branch_names

NAMES = [
    "main",
    "feature/x",
    "feature-x",
    "Feature/x",
    "feature/X",
    "feature#x",
    "feature x",
    "x/feature",
    "dependabot/npm_and_yarn/types/node-22.10.1",
    "renovate/" + "a" * 150,
    "renovate/" + "a" * 151,
    "größe",
    "日本",
    "1.x",
    "-",
]


@pytest.mark.parametrize("parent", ["payments", "p" * 64])
def test_each_branch_has_a_name_of_its_own(parent: str) -> None:
    """With the parent before the mark, as long as a name may be, in letters a cookie can have."""
    projects = [branch_names.branch_project_name(parent, name) for name in NAMES]
    assert len({name.casefold() for name in projects}) == len(NAMES)
    for name in projects:
        assert re.fullmatch(r"[A-Za-z0-9._~-]{1,80}", name), name
        assert branch_names.parent_name(name) == parent
        assert branch_names.is_branch(name)
    assert projects == [branch_names.branch_project_name(parent, name) for name in NAMES]


def test_a_simple_branch_keeps_its_name() -> None:
    """A slash is the mark; what has capitals or other characters has a digest, too."""
    assert branch_names.branch_project_name("payments", "feature/x") == "payments~feature~x"
    name = branch_names.branch_project_name("payments", "Feature/x")
    assert re.fullmatch(r"payments~feature~x-[0-9a-f]{6}", name)
    assert branch_names.parent_name("payments") == "payments"
    assert not branch_names.is_branch("payments")


@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws:states:us-east-1:{}:stateMachine:orders",
        "arn:aws-cn:states:cn-north-1:{}:activity:work",
        "arn:aws:events:us-east-1:{}:event-bus/default",
        "arn:aws:scheduler:us-east-1:{}:schedule/default/nightly",
        "arn:aws:logs:us-east-1:{}:log-group:/aws/vendedlogs/states/x:*",
        "arn:aws:states:*:{}:*",
    ],
)
def test_arns_of_this_server_move(arn: str) -> None:
    """Alone and in a text, of this account only."""
    moved = branch_names.moved_arns(arn.format("1" * 12), "1" * 12, "2" * 12)
    assert moved == arn.format("2" * 12)
    other = arn.format("3" * 12)
    assert branch_names.moved_arns(f"[{other}]", "1" * 12, "2" * 12) == f"[{other}]"


@pytest.mark.parametrize(
    "text",
    [
        "arn:aws:sqs:us-east-1:111111111111:queue",
        "arn:aws:lambda:us-east-1:111111111111:function:add",
        "arn:aws:iam::111111111111:role/states",
        "order 111111111111: paid",
    ],
)
def test_other_texts_stay(text: str) -> None:
    """Queues, functions and roles are not this server's, and numbers are no accounts."""
    assert branch_names.moved_arns(text, "1" * 12, "2" * 12) == text
