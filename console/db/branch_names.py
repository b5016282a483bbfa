"""Names of branch projects, such as ``orders~feature-x`` for a branch of the project ``orders``.

A branch project is a copy of another project, its parent, for a branch of a repository. No other
project's name contains ``~``. A branch has the members of its parent, and the operator's settings
of the parent apply to its branches.
"""

from __future__ import annotations

import hashlib
import re

MARK = "~"
_MOVED_SERVICES = "states|events|scheduler|logs"
LONGEST = 80
"""Characters of the name of a branch project."""
_PLAIN = re.compile(r"[a-z0-9][a-z0-9._/-]*")
_OTHER = re.compile(r"[^a-z0-9._/-]+")
_LONGEST_SLUG, _DIGEST = 40, 6


def is_branch(project: str) -> bool:
    """Return whether a project's name is a branch's."""
    return MARK in project


def parent_name(project: str) -> str:
    """Return the parent's name of a branch, else the name itself: its settings apply."""
    return project.partition(MARK)[0]


def branch_project_name(parent: str, branch: str) -> str:
    """Return the project name of a branch; the same for the same branch.

    ``feature/x`` is ``PARENT~feature~x``. A branch with capitals or other characters, or a long
    one, also has a digest, so that no two branches share a name.
    """
    room = min(_LONGEST_SLUG, LONGEST - len(parent) - len(MARK))
    if len(branch) <= room and _PLAIN.fullmatch(branch):
        slug = branch
    else:
        digest = hashlib.sha256(branch.encode()).hexdigest()[:_DIGEST]
        slug = _OTHER.sub("-", branch.lower()).strip("-/.")[: room - _DIGEST - 1] + f"-{digest}"
    return f"{parent}{MARK}{slug.replace('/', MARK)}"


def moved_arns(text: str, account: str, new_account: str) -> str:
    """Replace the parent's account by the branch's in the ARNs of a text.

    Only for services of this server: ARNs of queues, functions and other services remain unchanged.
    """
    if account not in text:
        return text
    arn = rf"(arn:aws[\w-]*:(?:{_MOVED_SERVICES}):[\w*-]*:){account}(?=:)"
    return re.sub(arn, rf"\g<1>{new_account}", text)
