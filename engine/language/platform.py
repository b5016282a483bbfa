"""The interface between the engine and its host: the supported AWS services and file formats.

The engine knows the optimized integrations. Only the host knows the operations of ``aws-sdk``
Resources and the file types that it can read. A process sets its platform once, before it reads
definitions (``use_platform``). Without a platform, everything counts as supported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.data.expression import Json
    from engine.language.model import Resource


class Platform(Protocol):
    """The abilities of the host."""

    def knows_action(self, service: str, action: str) -> bool:
        """Return whether a service of ``aws-sdk`` (``s3``) has an action (``getObject``)."""

    def unsupported_fields(self, resource: Resource, template: Json) -> Sequence[str]:
        """Return the names in Parameters or Arguments that the Task's action has no field for."""

    def wrong_values(self, resource: Resource, template: Json) -> Sequence[str]:
        """Return the problems of literal values in a Task's Parameters or Arguments."""

    def missing_reader(self, input_type: str) -> str:
        """Return why an ItemReader's InputType cannot be read; "" if it can."""

    def parameter_problem(self, resource: Resource, state: str, parameters: Json) -> str:
        """Return why the service would reject a Task's parameters; "" if it accepts them."""


class AnyPlatform:
    """A platform with all abilities, the default."""

    def knows_action(self, service: str, action: str) -> bool:
        """Accept every action."""
        return bool(service and action)

    def unsupported_fields(self, resource: Resource, template: Json) -> Sequence[str]:
        """Accept every name of a field."""
        del resource, template
        return ()

    def wrong_values(self, resource: Resource, template: Json) -> Sequence[str]:
        """Accept every value."""
        del resource, template
        return ()

    def missing_reader(self, input_type: str) -> str:
        """Accept every type of file."""
        del input_type
        return ""

    def parameter_problem(self, resource: Resource, state: str, parameters: Json) -> str:
        """Accept all parameters."""
        del resource, state, parameters
        return ""


_used: list[Platform] = [AnyPlatform()]


def use_platform(platform: Platform) -> None:
    """Read definitions from now on for a platform."""
    _used[0] = platform


def current_platform() -> Platform:
    """Return the platform in use."""
    return _used[0]
