"""Claims of a provider become names, groups and roles."""

from __future__ import annotations

from typing import Any

import pytest

from console.features.sign_in.claims import read_identity

PROVIDER = {
    "groups": {
        "*": {"shop": "viewer"},
        "dev": {"shop": "editor", "pay": "operator"},
        "leads": {"pay": "owner"},
    },
}


def identity(provider: dict[str, Any] | None = None, **claims: Any) -> Any:
    """Return the identity in claims."""
    claims = {"sub": "s1", "iss": "https://login.example.com", **claims}
    return read_identity("corp", PROVIDER if provider is None else provider, claims)


def test_the_highest_role_of_all_groups_counts() -> None:
    """Whatever the order of the groups; everybody is in the group of everybody."""
    for groups in (["dev", "leads"], ["leads", "dev"]):
        assert identity(groups=groups).roles == {"shop": "editor", "pay": "owner"}
    assert identity(groups=[]).roles == {"shop": "viewer"}
    assert identity().governed == {"shop", "pay"}


@pytest.mark.parametrize("groups", [None, 7, {}, [7, None, ["dev"]], "other", ["*"], ["Dev"]])
def test_other_values_name_no_group(groups: Any) -> None:
    """A claim of another type gives nothing, and a group called ``*`` is not everybody."""
    person = identity({"groups": {"dev": {"shop": "owner"}}}, groups=groups)
    assert person.roles == {}
    assert "*" not in person.groups


def test_a_claim_may_be_one_text_or_nested() -> None:
    """Dots lead into objects, unless a claim has the whole name."""
    assert identity(groups="dev").groups == ("dev",)
    nested = {"groups_claim": "realm_access.roles"}
    assert identity(nested, realm_access={"roles": ["dev"]}).groups == ("dev",)
    assert identity(nested, realm_access=["dev"]).groups == ()
    url = "https://example.com/groups"
    claims: dict[str, Any] = {url: ["dev"]}
    assert identity({"groups_claim": url}, **claims).groups == ("dev",)


def test_a_provider_without_administrators_appoints_and_dismisses_nobody() -> None:
    """None says that it does not decide."""
    assert identity(groups=["platform"]).administers is None
    provider = {"administrators": ["platform"]}
    assert identity(provider, groups=["platform"]).administers is True
    assert identity(provider, groups=["dev"]).administers is False


def test_names_are_brought_into_shape() -> None:
    """The first claim that has one counts; there is always a name."""
    assert identity(preferred_username="ana", email="a@b.example").names[0] == "ana"
    assert identity(email="a@b.example").names[0] == "a@b.example"
    assert identity(name=" Ana  Sánchez (Corp) ").names[0] == "Ana-Sánchez-Corp"
    assert identity({"name_claim": "upn"}, upn="u", preferred_username="p").names[0] == "u"
    assert identity(preferred_username="x" * 99).names[0] == "x" * 64
    assert identity(sub="()", preferred_username=7).names == ("corp",)


def test_an_account_belongs_to_issuer_and_subject() -> None:
    """The same subject of another issuer is somebody else."""
    assert identity().key == identity(name="other").key
    assert len({identity(sub="s2").key, identity(iss="other").key, identity().key}) == 3
