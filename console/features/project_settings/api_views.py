"""HTTP API that exports and imports a project's settings as YAML, for its owners.

A call is signed with an access key of the project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpResponse, JsonResponse

from console.awsapi import signed_calls
from console.errors import ValidationException
from console.features.project_settings import sections

if TYPE_CHECKING:
    from django.http import HttpRequest

    from console.access import Principal
    from console.db.audit import Actor

_OF_IMPORT = ("PutProjectSetting", "RemoveProjectSetting", "PutMaskedPaths")


@signed_calls.signed_view("GET", "POST")
def project_settings(request: HttpRequest, principal: Principal, actor: Actor) -> HttpResponse:
    """Answer ``/api/settings``: export the settings of the key's project, or import them."""
    if request.method == "GET":
        signed_calls.authorize(principal, actor, "ExportProjectSettings", request.path)
        text = sections.export_settings(principal.project)
        return HttpResponse(text, content_type="application/yaml; charset=utf-8")
    for action in _OF_IMPORT:
        signed_calls.authorize(principal, actor, action, request.path)
    return _import(request, principal, actor)


def _import(request: HttpRequest, principal: Principal, actor: Actor) -> HttpResponse:
    dry_run = request.GET.get("dryRun", "false")
    if dry_run not in ("true", "false"):
        raise ValidationException(f"dryRun: got {dry_run[:80]!r}, wanted true or false")
    try:
        text = request.body.decode()
    except UnicodeDecodeError as error:
        raise ValidationException(f"a byte at {error.start} of the file is no UTF-8") from None
    if dry_run == "true":
        plan = sections.plan_import(principal.project, text)
    else:
        plan = sections.import_settings(principal.project, text, actor)
    changes, secrets = map(str, plan.changes), map(str, plan.secrets)
    return JsonResponse({"changes": [*changes], "secrets": [*secrets]})
