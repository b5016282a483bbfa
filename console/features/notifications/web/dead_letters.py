"""Group dead letters by rule and cause."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from console.features.notifications.store import deliveries
from console.features.notifications.web import rule_display
from console.features.notifications.web.matches import statuses_of_events
from console.models import Delivery, EventRule, EventTarget
from console.statuses import DeliveryStatus
from console.web.core.formatting import normalized_text
from console.web.core.numbers import whole_number

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import QueryDict

    from console.web.core.scope import Scope

MOST = 5_000
"""The number of latest dead letters that are grouped."""
PAGE = 10
_MOST_OPEN = 3
"""The number of events of an only group that are shown without a click."""
_UNNAMED_ORIGIN = re.compile(r"'(https?://[^']+)' is not among the endpoints of targets\.json")


@dataclass(slots=True)
class DeadLetterGroup:
    """Dead letters of one rule with the same cause, newest first.

    ``cause``: the cause of the newest; ``errors``: the texts of all, which differ in numbers and
    ids.
    """

    rule: EventRule
    key: str
    cause: str
    last_ms: int
    first_ms: int
    count: int = 0
    errors: set[str] = field(default_factory=set)
    targets: dict[int, EventTarget] = field(default_factory=dict)

    @property
    def is_one_moment(self) -> bool:
        """Whether all failed within a second."""
        return self.first_ms // 1000 == self.last_ms // 1000

    @property
    def endpoint_line(self) -> str:
        """Return the missing line of targets.json, "" if there is another cause."""
        origin = _UNNAMED_ORIGIN.fullmatch(self.cause)
        return rule_display.endpoint_line(origin[1]) if origin else ""

    @property
    def addresses(self) -> list[str]:
        """Return the target addresses, by target id."""
        targets = sorted(self.targets.values(), key=lambda target: target.target_id)
        return [target.address for target in targets]


def _dead_deliveries(scope: Scope, rule: EventRule | None = None) -> QuerySet[Delivery]:
    dead = Delivery.objects.filter(
        project=scope.project, status=DeliveryStatus.DEAD, target__rule__region=scope.region
    )
    return dead if rule is None else dead.filter(target__rule=rule)


def group_dead_letters(scope: Scope, rule: EventRule | None = None) -> list[DeadLetterGroup]:
    """Return the latest dead letters in groups, largest first.

    ``rule``: whose they are, None for all.
    """
    dead = _dead_deliveries(scope, rule)
    newest = dead.order_by("-pk").values_list("target", "last_error", "ended_ms")
    rows = list(newest[:MOST])
    targets = EventTarget.objects.select_related("rule").in_bulk({row[0] for row in rows})
    groups: dict[str, DeadLetterGroup] = {}
    for number, error, ended_ms in rows:
        if (target := targets.get(number)) is not None:
            key = _group_key(target.rule, error)
            at_ms = ended_ms or 0
            new = DeadLetterGroup(target.rule, key, error, at_ms, at_ms)
            group = groups.setdefault(key, new)
            _count_letter(group, target, error, at_ms)
    return sorted(groups.values(), key=lambda group: (-group.count, group.rule.name, group.key))


def _count_letter(group: DeadLetterGroup, target: EventTarget, error: str, at_ms: int) -> None:
    group.count += 1
    group.first_ms = min(group.first_ms, at_ms)
    group.last_ms = max(group.last_ms, at_ms)
    group.errors.add(error)
    group.targets[target.pk] = target


def _group_key(rule: EventRule, error: str) -> str:
    cause = f"{rule.pk}\0{normalized_text(error)}"
    return hashlib.sha256(cause.encode()).hexdigest()[:16]


def find_group(groups: list[DeadLetterGroup], key: str) -> DeadLetterGroup | None:
    """Return the group of a key, None if its dead letters are gone."""
    return next((group for group in groups if group.key == key), None)


def list_dead_letters(
    scope: Scope,
    group: DeadLetterGroup | None = None,
    before: int | None = None,
    rule: EventRule | None = None,
) -> tuple[list[Delivery], int | None]:
    """Return a page of dead letters, newest first, and the key of the next page.

    ``group``: only those of a group; None for all, sorted by target and reason within the page.
    ``rule``: only those of a rule, None for all.
    """
    dead = _dead_deliveries(scope, rule)
    if group is not None:
        dead = dead.filter(target__rule=group.rule, last_error__in=group.errors)
    if before is not None:
        dead = dead.filter(pk__lt=before)
    letters = dead.select_related("target__rule", "event").defer("event__body").order_by("-pk")
    page = list(letters[: PAGE + 1])
    page_letters, older = page[:PAGE], page[PAGE - 1].pk if len(page) > PAGE else None
    if group is None:  # the same reason of the same target is said once
        page_letters.sort(key=lambda letter: (letter.target_id, letter.last_error))
    return page_letters, older


def _first_letters(
    groups: list[DeadLetterGroup], letters: list[Delivery]
) -> dict[int, DeadLetterGroup]:
    """Return dead letter id -> its group, for the first letter of each group on a page."""
    by_key = {group.key: group for group in groups}
    first: dict[int, DeadLetterGroup] = {}
    for letter in letters:
        group = by_key.pop(_group_key(letter.target.rule, letter.last_error), None)
        if group is not None:
            first[letter.pk] = group
    return first


def dead_letter_context(scope: Scope, query: QueryDict) -> dict[str, Any]:
    """Return the groups of dead letters, and the requested page of them.

    These are of the group ``?cause=``, or all of them for ``?letters=all``. One group of few
    events needs no choice. ``?rule=`` narrows all of it to one rule, by its number.
    """
    number = whole_number(query.get("rule", ""))
    rules = EventRule.objects.filter(project=scope.project, region=scope.region)
    rule = rules.filter(pk=number).first() if number else None
    total = _dead_deliveries(scope, rule).count()
    groups = group_dead_letters(scope, rule) if total else []
    group = find_group(groups, query.get("cause", ""))
    every = query.get("letters") == "all"
    before = whole_number(query.get("before", ""))
    if len(groups) == 1 and not every and (groups[0].count <= _MOST_OPEN or before is not None):
        group = groups[0]
    letters: list[Delivery] = []
    older: int | None = None
    if group or every:
        letters, older = list_dead_letters(scope, group, before, rule)
    return {
        "letters_of": rule,
        "groups": groups,
        "group": group,
        "every": every,
        "grouped_of": MOST if total > MOST else None,
        "letters": letters,
        "groups_of_letters": _first_letters(groups, letters),
        "event_statuses": statuses_of_events({letter.event_id for letter in letters}),
        "older": older,
        "newer": before is not None,
        "dead_total": total,
        "may_send": scope.may("events:SendAgain"),
        "may_delete": scope.may(deliveries.DELETE_LETTERS),
    }
