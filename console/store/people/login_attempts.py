"""Limit password attempts by account and by address, in all processes together.

An attempt is counted in the database *before* the password is checked, and the count is reduced
again if the password was correct. So a hundred parallel requests get no more guesses than a hundred
in sequence:

1. A hundred requests arrive when nine attempts have been counted. The first of them becomes the
   tenth attempt and locks the account; the others are refused without a check of their passwords.
2. If the tenth password is correct, the account's count is deleted. Otherwise the lock stays.

Anybody can lock an account by ten wrong passwords, or a shared address by fifty, and so keep others
out. Two ways to sign in stay open. Login links are not limited. A browser in which the person has
signed in before (a signed cookie proves it) has a separate count, and the counts of the account and
the address do not apply to it. The form that changes a password has a separate count, too.

django-axes was considered. It counts after the check, so parallel guesses pass; it stores the text
of the name field, where people sometimes type a password; and it has no count for a known browser.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog
from django.db.models import F
from django.utils.crypto import salted_hmac

from console.db import audit, clock
from console.db.writer import write
from console.models import LoginAttempts, Membership

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.models import Project

WINDOW_MS = 15 * 60_000
"""The period in which attempts are counted, and the duration of a lock."""
MOST_OF_ACCOUNT = 10
MOST_OF_ADDRESS = 50  # a whole team may share an address
log = structlog.get_logger(__name__)


class TooManyAttempts(Exception):
    """The account or the address is locked for ``seconds`` more."""

    def __init__(self, seconds: int) -> None:
        super().__init__(seconds)
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class Attempt:
    """A password attempt in progress; ``succeeded`` or ``failed`` records its outcome.

    ``keys``: the keys of its counts, the account's first. ``locks``: this attempt reached the limit
    of a count.
    """

    name: str
    address: str
    keys: tuple[str, ...]
    locks: bool
    guessed: str = "passwords"

    def succeeded(self) -> None:
        """Reset the account's count; take the attempt off the address's count."""

        def store() -> None:
            account, *others = self.keys
            LoginAttempts.objects.filter(key=account).delete()
            attempts = LoginAttempts.objects.filter(key__in=others, count__gt=0)
            attempts.update(count=F("count") - 1)

        write(store)

    def failed(self) -> None:
        """If this attempt caused a lock, write it into the log and the audit."""
        if not self.locks:
            return
        words = f"too many wrong {self.guessed}: logins are locked for a while"
        log.warning(words, address=self.address)
        write(self._record)

    def _record(self) -> None:
        members = Membership.objects.select_related("project").filter(user__username=self.name)
        reason = f"wrong {self.guessed}, the last one from {self.address or 'an unknown address'}"
        for member in members:
            audit.record(member.project, _SERVER, "LockLogin", self.name, reason)


def record_sign_in(name: str, by: str, address: str, request_id: str = "") -> None:
    """Write a person's sign-in into the audit of each of their projects.

    An administrator without a project has it in the audit of the server.

    ``by``: the way they signed in: a password, a link.
    """
    actor = audit.Actor(name, request_id=request_id)
    reason = f"by {by}, from {address or 'an unknown address'}"

    def store() -> None:
        members = Membership.objects.select_related("project").filter(user__username=name)
        projects: list[Project | None] = [member.project for member in members]
        for project in projects or [None]:
            audit.record(project, actor, "SignIn", name, reason)

    write(store)


_SERVER = audit.Actor("stateyard")


def begin_attempt(name: str, address: str, own: str = "", *, guessed: str = "passwords") -> Attempt:
    """Count an attempt to sign in; raise TooManyAttempts if the account or address is locked.

    ``name``: the typed name, with or without an account of that name. ``address``: the client's, as
    ``limited_address`` returns it. ``own``: names a known browser or the password form, which has a
    separate count for this account and none for the address; "" for an unknown browser.
    ``guessed``: what the attempts guess, such as "passwords", for the audit.
    """
    most = {_count_key("own" if own else "account", name, own): MOST_OF_ACCOUNT}
    if not own:
        most[_count_key("address", address)] = MOST_OF_ADDRESS
    wait_ms, locks = write(lambda: _count(most))
    if wait_ms:
        raise TooManyAttempts(-(-wait_ms // 1000))
    return Attempt(name, address, tuple(most), locks, guessed)


def count_use(purpose: str, subject: str, most: int) -> int:
    """Count a use of something that is limited, such as mails to an address.

    Return 0 for the first ``most`` uses within ``WINDOW_MS``, else the seconds to wait.
    """
    wait_ms, _ = write(lambda: _count({_count_key(purpose, subject): most}))
    return -(-wait_ms // 1000)


def _count(most: Mapping[str, int]) -> tuple[int, bool]:
    """Count an attempt for each key, unless one of the keys is locked.

    Return the milliseconds that a lock still lasts (0 without a lock), and whether this attempt
    locked a key.
    """
    now_ms = clock.now_ms()
    LoginAttempts.objects.filter(until_ms__lte=now_ms).delete()
    attempts = LoginAttempts.objects.select_for_update().filter(key__in=most).order_by("key")
    rows = {row.key: row for row in attempts}
    waits = [row.until_ms - now_ms for row in rows.values() if row.count >= most[row.key]]
    if waits:
        return max(waits), False
    locks = False
    for key in sorted(most):
        row = rows.get(key)
        if row is None:
            LoginAttempts.objects.create(key=key, count=1, until_ms=now_ms + WINDOW_MS)
            continue
        row.count += 1
        if row.count >= most[key]:
            locks, row.until_ms = True, now_ms + WINDOW_MS
        row.save(update_fields=["count", "until_ms"])
    return 0, locks


def _count_key(*parts: str) -> str:
    """Return the key of a count: a hash, so that backups have no names and no addresses."""
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return salted_hmac("stepyard.login-attempts", text, algorithm="sha256").hexdigest()
