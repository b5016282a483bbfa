"""A name that looks like somebody else's is refused."""

from __future__ import annotations

import pytest

from console.db.audit import Actor
from console.errors import ValidationException
from console.features.members import store as invitations
from console.models import Membership, Project
from console.store.people import names, people

OWNER = Actor("owner", "", "test")
OLEG = "\u041e\u043b\u0435\u0433"
CONFUSING = {
    "\u0430na": "several scripts",  # Cyrillic a
    "o\u03bfo": "several scripts",  # Greek omicron
    "\uff41na": "one script",  # full width
    "\U0001d41ana": "one script",  # mathematical bold
    "Ana": "looks like 'ana'",
    "\u00e1na": "looks like 'ana'",
    "adrnin": "looks like 'admin'",
    "\u0430\u0441\u0435": "looks like 'ace'",  # Cyrillic throughout
    "l1ly": "looks like 'lily'",
    "Ian": "looks like 'lan'",
}


@pytest.fixture
def members(project: Project) -> Project:
    """A project with members."""
    for name in ("ana", "admin", "ace", "lily", "lan", "dara"):
        people.put_member(project, name, "owner", OWNER)
    return project


@pytest.mark.parametrize(("name", "problem"), CONFUSING.items(), ids=map(ascii, CONFUSING))
def test_a_look_alike_is_neither_invited_nor_added(
    members: Project, name: str, problem: str
) -> None:
    """An owner who reads the list of members sees two people where there are two."""
    with pytest.raises(ValidationException, match=problem):
        invitations.create_invitation(members, name, "owner", 1, OWNER)
    with pytest.raises(ValidationException, match=problem):
        people.put_member(members, name, "owner", OWNER)
    assert Membership.objects.filter(project=members).count() == 6


@pytest.mark.parametrize(
    "name",
    [
        "jos\u00e9",
        "\u041e\u043b\u0435\u0433",
        "\u6797\u3055\u304f\u3089",
        "\uc774\uc218",
        "ana2",
        "ian",
        "clara",
        "ben-1.x+ci@y",
    ],
)
def test_names_of_one_script_are_taken(members: Project, name: str) -> None:
    """Letters of any language; a member keeps the name and gets another role."""
    invitations.create_invitation(members, name, "viewer", 1, OWNER)
    people.put_member(members, name, "viewer", OWNER)
    people.put_member(members, name, "editor", OWNER)


@pytest.mark.parametrize(
    "name",
    [
        *("", " ", "...", "a" * 81, "ana, by a link of owner", "ana\u201a by a link of owner"),
        *("ana by a link of owner", "by a l1nk", "rule nightly", "Schedule x", "link shop"),
        *("ruIe nightly", "Iink shop", "ana by a Iink"),
        *("\u0430na", "ana\u202egro", "ana\u200b", "ana\nx", "ana\x00", "<b>", "ana (owner)"),
    ],
    ids=ascii,
)
def test_the_reader_of_a_link_has_the_name_of_a_person(name: str) -> None:
    """No sign that could say under whose link the name is given, and nothing invisible."""
    with pytest.raises(ValidationException, match="Your name"):
        names.check_free_name(name, 80)


@pytest.mark.parametrize(
    "name", ["Grace", "Ana O'Neil", "Jean-Luc P.", "\u041e\u043b\u044c\u0433\u0430", "Jos\u00e9 2"]
)
def test_the_names_of_people_are_taken(name: str) -> None:
    """With blanks, apostrophes, points and hyphens."""
    names.check_free_name(name, 80)
