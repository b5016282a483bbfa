"""The next starts of a state machine take breakpoints and faults, each start one place."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import engine
from console.db import audit
from console.errors import ConflictException, ErrorCode, ServiceError
from console.features.breakpoints.setting import put_allowed
from console.features.next_starts import store
from console.models import AuditEntry, Execution, HaltedExecution, StateMachine
from console.store.executions import next_starts
from console.store.executions.faults import planned_faults, read_plan, start_faulty
from console.store.executions.replay import start_replay
from console.store.executions.start import start_execution
from console.store.machines import machines, versions
from console.store.machines.versions import Target
from tests.console.store.helpers import PASS, assert_nothing_wrong, create, crowd, drain, function

if TYPE_CHECKING:
    from console.models import Project
    from tests.console.transition_rates import Clock

ANA, BEN = audit.Actor("ana"), audit.Actor("ben")
CALLED = {
    "StartAt": "Call",
    "States": {
        "Call": {**function("work"), "Next": "Done"},
        "Done": {"Type": "Pass", "End": True},
    },
}
CALL = engine.Breakpoint("Call")
BUSY = {"state": "Call", "error": "Busy"}


@pytest.fixture
def machine(project: Project) -> StateMachine:
    """Return a machine with a call."""
    return create(project, CALLED)


def set_places(
    machine: StateMachine,
    starts: int = 2,
    *,
    places: tuple[engine.Breakpoint, ...] = (CALL,),
    faults: Any = None,
    hours: int = 1,
    actor: audit.Actor = ANA,
) -> next_starts.NextStarts:
    """Set breakpoints and faults for the next starts."""
    return store.set_next_starts(
        machine,
        starts=starts,
        hours=hours,
        places=places,
        faults=read_plan(Target(machine), faults, actor.name) if faults else None,
        seeded=isinstance(faults, dict),
        actor=actor,
    )


def as_read(machine: StateMachine) -> StateMachine:
    """Return the row of a machine as a new request reads it."""
    return StateMachine.objects.select_related("project").get(pk=machine.pk)


def start(machine: StateMachine, **more: Any) -> Execution:
    """Start as a request does that has just read the machine."""
    return drain(start_execution(as_read(machine), actor=BEN, **more))


def halted() -> set[str]:
    """Return the names of the executions that stand at a breakpoint."""
    return set(HaltedExecution.objects.values_list("execution__name", flat=True))


def test_the_next_starts_stop_and_the_one_after_does_not(machine: StateMachine) -> None:
    """Each has the place that it took; then the machine is as if nothing had been set."""
    set_places(machine)
    numbers = []
    for name in ("a", "b", "c"):
        place = next_starts.place_of(start(machine, name=name))
        numbers.append(place and (place.set_by, place.starts, place.number))
    assert numbers == [("ana", 2, 1), ("ana", 2, 2), None]
    assert halted() == {"a", "b"}
    assert as_read(machine).next_starts is None
    reasons = AuditEntry.objects.filter(action="StartExecution").order_by("pk")
    assert [entry.reason for entry in reasons] == [
        "start 1 of the next 2, set by ana: breakpoints: Call before",
        "start 2 of the next 2, set by ana: breakpoints: Call before",
        "",
    ]
    (entry,) = AuditEntry.objects.filter(action="SetNextStarts")
    assert (entry.actor, entry.target) == ("ana", machine.arn)
    assert entry.reason == "next 2 starts, for 1 h; Stops before Call"
    assert_nothing_wrong()


def test_faults_of_a_place_strike(machine: StateMachine) -> None:
    """They are stored with the execution, by whom they were set, with a seed of its own."""
    set_places(machine, 2, places=(), faults=[{**BUSY, "rate": 0.5}])
    seeds = set()
    for name in ("a", "b"):
        seed, words = planned_faults(start(machine, name=name))
        assert words == ["Call fails with Busy before its call, at a rate of 0.5"]
        seeds.add(seed)
    assert len(seeds) == 2
    set_places(machine, 1, faults={"seed": 7, "faults": [BUSY]})
    execution = start(machine, name="c")
    assert planned_faults(execution)[0] == 7
    assert halted() == {"c"}


def test_the_same_start_twice_takes_one_place(machine: StateMachine) -> None:
    """It is the same execution, also if its place had faults; another input is refused."""
    set_places(machine, 3, faults=[BUSY])
    first = start(machine, name="a", input="[1]")
    assert start(machine, name="a", input="[1]").pk == first.pk
    with pytest.raises(ServiceError) as refused:
        start(machine, name="a", input="[2]")
    assert refused.value.code == ErrorCode.ExecutionAlreadyExists
    current = next_starts.next_starts_of(as_read(machine), first.start_ms)
    assert current is not None
    assert (current.taken, current.remaining) == (1, 2)


def test_a_start_that_is_refused_after_its_place_gives_it_back(
    machine: StateMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The place and the execution are one transaction; the row may be one that is kept."""
    set_places(machine, 1)
    row = as_read(machine)

    def refuse(*_: Any) -> None:
        raise ConflictException("No.")

    with monkeypatch.context() as broken:
        broken.setattr("console.store.executions.start._audit_start", refuse)
        with pytest.raises(ConflictException):
            start_execution(row, name="a", actor=BEN)
    assert not Execution.objects.exists()
    assert next_starts.place_of(start_execution(row, name="a", actor=BEN)) is not None


def test_many_starts_at_once_take_as_many_places_as_there_are(machine: StateMachine) -> None:
    """Whatever the starts have read before: a place is taken once."""
    set_places(machine, 5)
    rows = [as_read(machine) for _ in range(12)]
    crowd(12, lambda number: start_execution(rows[number], name=f"n{number}", actor=BEN))
    places = [next_starts.place_of(execution) for execution in Execution.objects.all()]
    assert sorted(place.number for place in places if place) == [1, 2, 3, 4, 5]
    assert len(places) == 12
    assert as_read(machine).next_starts is None
    for execution in Execution.objects.all():
        drain(execution)
    assert len(halted()) == 5
    assert_nothing_wrong()


def test_the_same_start_by_many_at_once_takes_one_place(machine: StateMachine) -> None:
    """A client that repeats its call gets the same execution."""
    set_places(machine, 5, faults=[BUSY])
    rows = [as_read(machine) for _ in range(6)]
    crowd(6, lambda number: start_execution(rows[number], name="same", actor=BEN))
    assert Execution.objects.count() == 1
    current = next_starts.next_starts_of(as_read(machine), 0)
    assert current is not None
    assert current.taken == 1


def test_two_people_at_once_set_one(machine: StateMachine) -> None:
    """The other one learns who was first."""
    refusals: list[str] = []

    def act(number: int) -> None:
        try:
            set_places(machine, 1 + number, actor=audit.Actor(f"p{number}"))
        except ConflictException as refused:
            refusals.append(refused.message)

    crowd(4, act)
    assert len(refusals) == 3
    assert all("has set some for the next" in words for words in refusals)
    assert AuditEntry.objects.filter(action="SetNextStarts").count() == 1


def test_the_same_call_again_sets_nothing_anew(machine: StateMachine) -> None:
    """A client repeats a call whose answer was lost; once a place is taken, it is another one."""
    first = set_places(machine, faults=[BUSY])
    assert set_places(machine, faults=[BUSY]) == first
    start(machine, name="a")
    with pytest.raises(ConflictException, match="ana has set some for the next start: remove"):
        set_places(machine, faults=[BUSY])
    assert AuditEntry.objects.filter(action="SetNextStarts").count() == 1


def test_a_removal_is_of_those_that_were_seen(machine: StateMachine) -> None:
    """Others that were set meanwhile stay, and nothing is removed twice."""
    seen = set_places(machine)
    store.remove_next_starts(machine, BEN, seen.set_ms)
    with pytest.raises(ConflictException, match="They are gone"):
        store.remove_next_starts(machine, BEN, seen.set_ms)
    set_places(machine, 3)
    with pytest.raises(ConflictException, match="has set other ones"):
        store.remove_next_starts(machine, BEN, seen.set_ms - 1)
    start(machine, name="a")
    store.remove_next_starts(machine, BEN, None)
    entry = AuditEntry.objects.filter(action="RemoveNextStarts").latest("pk")
    assert (entry.actor, entry.reason) == ("ben", "1 of 3 taken")
    assert next_starts.place_of(start(machine, name="b")) is None


def test_after_their_time_nothing_is_set(machine: StateMachine, now: Clock) -> None:
    """The next start runs without, and forgets them; others can be set before."""
    set_places(machine, hours=2)
    now.later(2 * 3600)
    assert next_starts.place_of(start(machine, name="a")) is None
    assert as_read(machine).next_starts is None
    set_places(machine, hours=2)
    now.later(2 * 3600)
    assert store.list_next_starts(machine.project) == []
    set_places(machine, 7)
    assert [current.starts for _, current in store.list_next_starts(machine.project)] == [7]


def test_starts_with_their_own_and_replays_take_no_place(machine: StateMachine) -> None:
    """The breakpoints or faults of a request count alone."""
    set_places(machine)
    start(machine, name="own", breakpoints=(engine.Breakpoint("Done"),))
    faulty = start_faulty(Target(as_read(machine)), [BUSY], BEN, name="faulty")
    drain(start_replay(faulty, "Done", input="{}", name="again"))
    marked = Execution.objects.filter(next_starts__isnull=False)
    assert not marked.exists()
    current = next_starts.next_starts_of(as_read(machine), faulty.start_ms)
    assert current is not None
    assert current.taken == 0


def test_a_definition_without_the_state_takes_no_place(machine: StateMachine) -> None:
    """A version is asked by its own states, and so is a definition that is saved meanwhile."""
    version = versions.publish_version(machine)
    set_places(machine, faults=[BUSY])
    machines.update_machine(machine, definition=json.dumps(PASS))
    assert next_starts.place_of(start(machine, name="a")) is None
    row = as_read(machine)
    current = next_starts.next_starts_of(row, 0)
    assert current is not None
    problem = next_starts.problem_of(current, row.project.name, row.definition_id)
    assert "got the state 'Call'" in problem
    assert next_starts.place_of(start(machine, name="b", version=version)) is not None


def test_a_project_that_forbids_breakpoints_takes_none(machine: StateMachine) -> None:
    """The places stay for the time when it allows them again."""
    set_places(machine)
    put_allowed(machine.project, ANA, allowed=False)
    assert next_starts.place_of(start(machine, name="a")) is None
    put_allowed(machine.project, ANA, allowed=True)
    assert next_starts.place_of(start(machine, name="b")) is not None


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"starts": 0}, "starts: got 0, expected 1 to 100"),
        ({"starts": 101}, "starts: got 101, expected 1 to 100"),
        ({"hours": 0}, "hours: got 0, expected 1 to 168"),
        ({"hours": 169}, "hours: got 169, expected 1 to 168"),
        ({"places": ()}, "Select at least one breakpoint or one fault"),
    ],
)
def test_what_cannot_be_set_is_refused(
    machine: StateMachine, more: dict[str, Any], words: str
) -> None:
    """In words; the machine stays as it was."""
    with pytest.raises(ServiceError, match=words):
        set_places(machine, **more)
    assert as_read(machine).next_starts is None


def test_a_text_that_each_start_would_read_is_bounded(machine: StateMachine) -> None:
    """Fifty long conditions are refused."""
    places = [replace_condition(number) for number in range(50)]
    with pytest.raises(ServiceError, match="expected at most 65,536"):
        set_places(machine, places=tuple(places))


def replace_condition(number: int) -> engine.Breakpoint:
    """Return a breakpoint with a long condition of its own."""
    return engine.Breakpoint("Call", condition=f"{number} = 0 /* {'x' * 3_000} */")


def test_express_machines_and_machines_that_go_have_none(machine: StateMachine) -> None:
    """An Express execution cannot stop, and a machine that is being deleted starts nothing."""
    StateMachine.objects.filter(pk=machine.pk).update(status="DELETING")
    with pytest.raises(ServiceError, match="is being deleted"):
        set_places(machine)
    machine.type = "EXPRESS"
    with pytest.raises(ServiceError, match="Express executions have no breakpoints"):
        set_places(machine)


def test_a_change_of_the_machine_keeps_what_is_set(machine: StateMachine) -> None:
    """It writes the whole row, which it has read under a lock."""
    set_places(machine)
    stale = as_read(machine)
    start(machine, name="a")
    machines.update_machine(stale, role_arn="arn:aws:iam::123456789012:role/other")
    current = next_starts.next_starts_of(as_read(machine), 0)
    assert current is not None
    assert current.taken == 1


def test_the_text_goes_through_the_row(machine: StateMachine) -> None:
    """What is read is what was set."""
    current = set_places(machine, faults={"seed": 3, "faults": [BUSY]})
    read = next_starts.next_starts_of(as_read(machine), current.set_ms)
    assert read == replace(current, taken=0)
    assert next_starts.next_starts_of(as_read(machine), current.until_ms) is None
