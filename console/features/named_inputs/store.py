"""Save, rename and delete the named inputs of a state machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import engine
from console.db import audit, clock
from console.db.writer import write
from console.errors import ConflictException, ErrorCode, ServiceError, ValidationException
from console.features.named_inputs.models import NamedInput
from console.masking.mask import MASK, Mask
from console.masking.masked_execution import places_of
from console.models import StateMachine

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from console.models import Project

MOST = 100
LONGEST_NAME = 80


def list_inputs(machine: StateMachine) -> list[NamedInput]:
    """Return the inputs of a machine by name, with their texts."""
    return list(NamedInput.objects.filter(state_machine=machine).order_by("name"))


def list_names(machine: StateMachine) -> list[str]:
    """Return the names of a machine's inputs, sorted."""
    rows = NamedInput.objects.filter(state_machine=machine).order_by("name")
    return list(rows.values_list("name", flat=True))


def get_input(machine: StateMachine, name: str) -> NamedInput:
    """Return an input; raise ResourceNotFound."""
    row = NamedInput.objects.filter(state_machine=machine, name=name).first()
    if row is None:
        raise _not_there(machine, name)
    return row


def put_input(machine: StateMachine, name: str, text: str, actor: audit.Actor) -> NamedInput:
    """Save a new input. Raise ValidationException, ConflictException for a name in use."""
    name = check_name(name)
    check_text(text)

    def store() -> NamedInput:
        rows = _locked_inputs(machine)
        if rows.filter(name=name).exists():
            raise _in_use(machine, name)
        if rows.count() >= MOST:
            raise ValidationException(
                f"{machine.name} has {MOST} named inputs, the maximum. Delete one first."
            )
        row = NamedInput(
            state_machine=machine,
            name=name,
            text=text,
            saved_by=actor.name,
            saved_ms=clock.now_ms(),
        )
        row.save(force_insert=True)
        audit.record(machine.project, actor, "PutNamedInput", machine.arn, name)
        return row

    return write(store)


def rename_input(machine: StateMachine, name: str, new_name: str, actor: audit.Actor) -> str:
    """Rename an input; return it. Raises as ``put_input``, and ResourceNotFound."""
    new_name = check_name(new_name)

    def store() -> None:
        rows = _locked_inputs(machine)
        if new_name != name and rows.filter(name=new_name).exists():
            raise _in_use(machine, new_name)
        if not rows.filter(name=name).update(name=new_name):
            raise _not_there(machine, name)
        audit.record(machine.project, actor, "PutNamedInput", machine.arn, f"{name} to {new_name}")

    write(store)
    return new_name


def delete_input(machine: StateMachine, name: str, actor: audit.Actor) -> None:
    """Delete an input; raise ResourceNotFound."""

    def store() -> None:
        count, _ = NamedInput.objects.filter(state_machine=machine, name=name).delete()
        if not count:
            raise _not_there(machine, name)
        audit.record(machine.project, actor, "DeleteNamedInput", machine.arn, name)

    write(store)


def shown_text(project: Project, text: str) -> str:
    """Return an input's text with masked values."""
    return Mask(places_of(project.masked)).payload(text) if project.masked else text


def check_name(name: str) -> str:
    """Return a normalized name; raise ValidationException."""
    shaped = " ".join(name.split())
    if not shaped or len(shaped) > LONGEST_NAME or not shaped.isprintable():
        raise ValidationException(
            f"Name: got {shaped[:40]!r}; it must have 1 to {LONGEST_NAME} printable characters."
        )
    return shaped


def check_text(text: str) -> None:
    """Raise ValidationException unless a text is valid JSON for an execution's input."""
    if engine.is_too_long(text):
        limit = engine.payload_limit()
        raise ValidationException(f"Input: got more than {limit.most} {limit.unit}.")
    try:
        engine.loads(text)
    except engine.JsonTextError as error:
        raise ValidationException(f"Input: got no JSON: {error}.") from None
    if f'"{MASK}"' in text:
        raise ValidationException(
            f"Input: got {MASK} in place of a hidden value. Save the input on the page of its "
            "execution."
        )


def _locked_inputs(machine: StateMachine) -> QuerySet[NamedInput]:
    """Return a state machine's inputs, locked against additions in this transaction."""
    StateMachine.objects.select_for_update().get(pk=machine.pk)
    return NamedInput.objects.filter(state_machine=machine)


def _in_use(machine: StateMachine, name: str) -> ConflictException:
    return ConflictException(
        f"{machine.name} has an input “{name}” already. Delete it first, or choose another name."
    )


def _not_there(machine: StateMachine, name: str) -> ServiceError:
    message = f"{machine.name} has no input “{name[:LONGEST_NAME]}”."
    return ServiceError(ErrorCode.ResourceNotFound, message)
