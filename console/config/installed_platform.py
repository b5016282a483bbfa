"""What machines can call and read here, which the checks of a definition ask for."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine import Resource


class InstalledPlatform:
    """The operations that botocore knows, and the files that the installed packages read."""

    def knows_action(self, service: str, action: str) -> bool:
        """Tell whether a service of ``aws-sdk`` (``s3``) has an action (``getObject``)."""
        from console.integrations import names  # imported late: it takes botocore along

        return names.has_operation(service, action)

    def unsupported_fields(self, resource: Resource, template: Any) -> list[str]:
        """Return the names in a Task's Parameters or Arguments that its action has no field for."""
        from console.integrations import parameters

        return parameters.unsupported_fields(resource, template)

    def wrong_values(self, resource: Resource, template: Any) -> list[str]:
        """Return what is wrong with the literal values in a Task's Parameters or Arguments."""
        from console.integrations import parameters

        return parameters.wrong_values(resource, template)

    def missing_reader(self, input_type: str) -> str:
        """Return why an ItemReader's InputType cannot be read; "" if it can."""
        if input_type != "PARQUET" or find_spec("pyarrow") is not None:
            return ""
        return (
            "PARQUET cannot be read here: the package 'pyarrow' is not installed "
            "(pip install pyarrow)"
        )
