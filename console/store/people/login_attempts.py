"""Limit how many passwords are tried, by account and by address, in all processes together.

An attempt is counted in the database *before* the password is checked, and given back when the
password was right. So a hundred requests at once get no more guesses than one after another:

1. A hundred requests arrive while nine attempts are counted. One takes the tenth, and the account
   is locked by that; the others are refused before they check anything.
2. The tenth password is right: the account's count is deleted. It is wrong: the lock stays.

An account that anybody can lock is one that its owner can be kept out of, and so is an address that
many people share. Two ways in stay open: a login link is not limited, and a browser that the person
logged in with before (it has a signed cookie that says so) has a count of its own, and no other. So
has the form that changes a password.

django-axes was considered. It counts after the check, so parallel guesses pass; it keeps what was
typed as a name, which sometimes is a password; and it has no count for a known browser.
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

WINDOW_MS = 15 * 60_000
"""So long attempts are counted together, and so long a lock lasts."""
MOST_OF_ACCOUNT = 10
MOST_OF_ADDRESS = 50  # a whole team may come from one
log = structlog.get_logger(__name__)


class TooManyAttempts(Exception):
    """No password is checked now. ``seconds``: until one is checked again."""

    def __init__(self, seconds: int) -> None:
        super().__init__(seconds)
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class Attempt:
    """A password attempt in progress; ``succeeded`` or ``failed`` records its outcome.

    ``keys``: what it is counted under, the account first. ``locks``: it was the last one of a key.
    """

    name: str
    address: str
    keys: tuple[str, ...]
    locks: bool

    def succeeded(self) -> None:
        """Reset the account's count; give the address the attempt back."""

        def store() -> None:
            account, *others = self.keys
            LoginAttempts.objects.filter(key=account).delete()
            attempts = LoginAttempts.objects.filter(key__in=others, count__gt=0)
            attempts.update(count=F("count") - 1)

        write(store)

    def failed(self) -> None:
        """Tell the log and the audit if that was the last one."""
        if not self.locks:
            return
        log.warning("too many wrong passwords: logins are locked for a while", address=self.address)
        write(self._record)

    def _record(self) -> None:
        members = Membership.objects.select_related("project").filter(user__username=self.name)
        reason = f"wrong passwords, the last one from {self.address or 'an unknown address'}"
        for member in members:
            audit.record(member.project, _SERVER, "LockLogin", self.name, reason)


def record_sign_in(name: str, by: str, address: str, request_id: str = "") -> None:
    """Write that a person signed in into the audit of each of their projects.

    ``by``: what let them in: a password, a link.
    """
    actor = audit.Actor(name, request_id=request_id)
    reason = f"by {by}, from {address or 'an unknown address'}"

    def store() -> None:
        members = Membership.objects.select_related("project").filter(user__username=name)
        for member in members:
            audit.record(member.project, actor, "SignIn", name, reason)

    write(store)


_SERVER = audit.Actor("stateyard")


def begin_attempt(name: str, address: str, own: str = "") -> Attempt:
    """Count an attempt to log in; raise TooManyAttempts if its password must not be checked.

    ``name``: of the account, whether there is one or not. ``address``: where it comes from, as
    ``limited_address`` returns it. ``own``: names what has a count of its own for this account, and
    none for the address; "" for what everybody can try.
    """
    most = {_count_key("own" if own else "account", name, own): MOST_OF_ACCOUNT}
    if not own:
        most[_count_key("address", address)] = MOST_OF_ADDRESS
    wait_ms, locks = write(lambda: _count(most))
    if wait_ms:
        raise TooManyAttempts(-(-wait_ms // 1000))
    return Attempt(name, address, tuple(most), locks)


def _count(most: Mapping[str, int]) -> tuple[int, bool]:
    """Count an attempt for each key, unless one of the keys is locked.

    Return for how many more milliseconds it is locked, and whether this attempt locked a key.
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
    """Return what a count is kept under: a backup tells no names and no addresses."""
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return salted_hmac("stepyard.login-attempts", text, algorithm="sha256").hexdigest()
