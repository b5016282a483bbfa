"""Views that export a project's settings as a file, and import one after a dry run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from console.db import project_settings
from console.errors import ConflictException, ServiceError, ValidationException
from console.features.project_settings import documents, sections
from console.features.project_settings.forms import SettingsImportForm
from console.web.core.scope import actor_of, render, require, scope_of

if TYPE_CHECKING:
    from django.http import HttpRequest

    from console.features.project_settings.sections import Plan


@require_safe
def settings_download(request: HttpRequest) -> HttpResponse:
    """Return ``/settings/file/export/``: the settings as a file."""
    project = scope_of(request).project
    text = sections.export_settings(project)
    answer = HttpResponse(text, content_type="application/yaml; charset=utf-8")
    name = re.sub(r"[^\w.-]", "_", project.name)
    answer["Content-Disposition"] = f'attachment; filename="{name}-settings.yaml"'
    answer["Cache-Control"] = "no-store"
    return answer


@require_http_methods(["GET", "POST"])
def settings_file_page(request: HttpRequest) -> HttpResponse:
    """Show ``/settings/file/``; a POST shows the dry run of a file, or imports it."""
    scope = scope_of(request)
    text, problem, status = "", "", 200
    errors: dict[str, str] = {}
    plan: Plan | None = None
    if request.method == "POST":
        for action in (project_settings.PUT, project_settings.REMOVE, "PutMaskedPaths"):
            require(scope, action)
        sent = SettingsImportForm(request.POST).values
        text = sent["text"]
        try:
            text = text or _read_upload(request)
            if sent["state"]:
                result = sections.import_settings(
                    scope.project, text, actor_of(scope), sent["state"]
                )
                count = len(result.changes)
                messages.success(request, f"{count} setting{'' if count == 1 else 's'} changed.")
                if not result.secrets:
                    return redirect("settings-file")
                secrets = "; ".join(map(str, result.secrets))
                messages.warning(request, f"Enter these secrets, then the entries count: {secrets}")
                return redirect(result.secrets[0].page)
            plan = sections.plan_import(scope.project, text)
        except ConflictException as error:
            problem, status = f"{error.message} Look at the changes again.", 409
            plan = sections.plan_import(scope.project, text)
        except ServiceError as error:
            errors, status = {"text" if text else "file": error.message}, 422
    context = {
        "section": "settings",
        "page": "file",
        "may_change": True,
        "text": text,
        "problem": problem,
        "errors": errors,
        "plan": plan,
    }
    return render(request, "project_settings/file.html", context, status=status)


def _read_upload(request: HttpRequest) -> str:
    """Return the text of the uploaded file; raise ValidationException."""
    upload = request.FILES.get("file")
    if upload is None:
        raise ValidationException("Select a file, or paste its text.")
    if (upload.size or 0) > 4 * documents.LARGEST:
        raise ValidationException(
            f"The file has {upload.size} bytes. At most {documents.LARGEST} characters are"
            " accepted."
        )
    try:
        text: str = upload.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValidationException(f"a byte at {error.start} of the file is no UTF-8") from None
    return text.replace("\r\n", "\n")
