"""The settings of a project are exported as YAML and imported, after a dry run, in one step."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest

from console.db import project_settings
from console.db.audit import Actor
from console.errors import ConflictException, ValidationException
from console.features.project_settings import documents, sections
from console.models import AuditEntry, Project, ProjectSetting
from console.store.people import masks
from tests.console.web.helpers import text

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

BY = Actor("ana")
MOCKS: dict[str, Any] = {
    "StateMachines": {"machine": {"TestCases": {"on": {"Pay": "Paid"}}}},
    "MockedResponses": {"Paid": {"0": {"Return": {"id": 7, "since": "2026-01-01", "no": "010"}}}},
}
ALL = """\
quotas:
  open_executions: 500
  start_execution: {bucket: 20, refill: 10}
deny:
  orders-role: [sqs:SendMessage]
retention_days: 30
masks: [$.card.number]
mocks:
  StateMachines: {machine: {TestCases: {Happy: {Pay: Paid}}}}
  MockedResponses: {Paid: {"0": {Return: {id: 7}}}}
"""


@pytest.mark.postgres_too
def test_an_import_of_its_own_export_changes_nothing(project: Project) -> None:
    """Texts that YAML 1.1 reads as other values stay texts; another project becomes the same."""
    sections.import_settings(project, ALL, BY)
    row = project_settings.find_setting(project, "mocks")
    assert row is not None
    project_settings.put_setting(project, "mocks", "", MOCKS, BY, revision=row.revision)
    project.refresh_from_db()
    exported = sections.export_settings(project)
    assert sections.plan_import(project, exported).changes == ()
    assert documents.read_document(exported).sections["mocks"] == MOCKS
    other = Project.objects.create(name="other", account_id="222222222222")
    assert sections.import_settings(other, exported, BY).changes
    other.refresh_from_db()
    assert sections.export_settings(other).splitlines()[1:] == exported.splitlines()[1:]
    empty = sections.export_settings(Project.objects.create(name="third", account_id="3" * 12))
    removed = sections.import_settings(other, empty, BY)
    assert {change.after for change in removed.changes} == {""}
    assert not ProjectSetting.objects.filter(project=other).exists()
    assert ProjectSetting.objects.filter(project=project).count() == 5


@pytest.mark.postgres_too
def test_a_plan_says_what_changes(project: Project) -> None:
    """A section replaces that of the project, and others stay; the audit has each change."""
    sections.import_settings(project, ALL, BY)
    AuditEntry.objects.all().delete()
    project.refresh_from_db()
    sent = "quotas: {open_executions: 400, activities: 5}\ndeny: {}\n"
    plan = sections.plan_import(project, sent)
    assert [str(change) for change in plan.changes] == [
        "~ quotas: open_executions: 500 -> 400",
        "+ quotas: activities: 5",
        "- quotas: start_execution: 20 at once and 10 a second",
        "- deny: orders-role: sqs:SendMessage",
    ]
    assert not AuditEntry.objects.exists()
    sections.import_settings(project, sent, BY, plan.state)
    assert AuditEntry.objects.filter(actor="ana").count() == 4
    with pytest.raises(ConflictException, match="changed meanwhile"):
        sections.import_settings(project, sent, BY, plan.state)


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ("quota: {}", "line 1: quota: an unknown section, wanted quotas, deny"),
        ("\nquotas:\n  activity: 1", "line 3: quotas: activity: got an unknown name, wanted one"),
        ("quotas: 1", "line 1: quotas: this section must have"),
        ("quotas:\n  activities: many", "line 2: quotas: activities: got 'many', wanted a whole"),
        ("quotas: {activities: yes}", "line 1: quotas: activities: got 'yes'"),
        ("quotas:\n  activities: 10001", "got 10,001, wanted at most 10,000, the operator's ceil"),
        ("quotas:\n  activities: 1\n  activities: 2", "line 3: the key 'activities' stands twice"),
        ("quotas: {start_link: {bucket: 1, refill: 1, burst: 1}}", "start_link: burst: got an unk"),
        ("masks: []\nmasks: []", "line 2: the key 'masks' stands twice"),
        ("masks:\n  - $.a\n  - a b", "line 3: masks: Path 2"),
        ("masks: $.a", "line 1: masks: this section must be a list"),
        ("retention_days: soon", "line 1: retention_days: days: got 'soon'"),
        ("retention_days: .inf", "a value that JSON does not have"),
        ("deny:\n  r:\n    - sqs:*\n    - sqs", "line 4: deny: r: 1: got 'sqs', wanted an action"),
        ("deny: {r: []}", "line 1: deny: deny: r: name at least one"),
        ("mocks:\n  StateMachines: {}\n  Machines: {}", "line 3: mocks: Machines: got an unknown"),
        ("mocks:\n  MockedResponses:\n    A:\n      0: {}", "line 4: the key 0 is no text"),
        ("a: &a [1]\nb: *a", "line 1: the anchor &a: anchors are refused"),
        ("b: *a", "line 1: the alias *a: aliases are refused"),
        ("masks: !!python/object/apply:os.system [x]", "line 1: the tag tag:yaml.org,2002:python"),
        ("masks: !Sub x", "the tag !Sub: tags are refused"),
        ("[" * 300, "line 1: more than 200 lists and objects"),
        ("- 1", "line 1: the file must have sections"),
        ("a: b: c", "line 1: mapping values are not allowed here"),
        ("---\na: 1\n---\nb: 1", "but found another document"),
        ("x" * 1_000_001, "At most 1000000 are accepted"),
    ],
)
def test_what_a_file_may_not_have_is_refused(project: Project, sent: str, words: str) -> None:
    """By name and line; nothing is changed, whatever else is in the file."""
    with pytest.raises(ValidationException) as refused:
        sections.import_settings(project, sent, BY)
    assert words in refused.value.message
    assert not ProjectSetting.objects.exists()


def test_an_import_is_all_or_nothing(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that is refused in the middle takes the ones before it back."""

    def refuse(*_: object) -> None:
        raise ValidationException("no")

    monkeypatch.setattr(masks, "put_paths", refuse)
    with pytest.raises(ValidationException, match="no"):
        sections.import_settings(project, ALL, BY)
    assert not ProjectSetting.objects.exists()
    assert not AuditEntry.objects.filter(action="PutProjectSetting").exists()


def test_the_page_shows_a_plan_first(project: Project, signed_in: Callable[[str], Client]) -> None:
    """An upload is shown as changes; the second press imports, unless somebody was faster."""
    owner = signed_in("owner")
    shown = text(owner.post("/settings/file/", {"file": io.BytesIO(ALL.encode())}))
    assert "5 changes" not in shown
    assert "6 changes" in shown
    assert not ProjectSetting.objects.exists()
    plan = sections.plan_import(project, ALL)
    answer = owner.post("/settings/file/", {"text": ALL, "state": plan.state})
    assert answer.status_code == 302
    assert ProjectSetting.objects.count() == 5
    answer = owner.post("/settings/file/", {"text": "deny: {}", "state": plan.state})
    assert "Look at the changes again." in text(answer, 409)
    assert ProjectSetting.objects.count() == 5
    answer = owner.post("/settings/file/", {"text": "x: 1"})
    assert "line 1: x: an unknown section" in text(answer, 422)
    shown = text(owner.post("/settings/file/", {}), 422)
    assert 'id="file-error" role="alert">Select a file' in shown
    answer = owner.get("/settings/file/export/")
    assert answer["Content-Disposition"] == 'attachment; filename="default-settings.yaml"'
    assert "open_executions: 500" in text(answer)
    assert "changes nothing" in text(owner.post("/settings/file/", {"text": text(answer)}))


def test_only_owners_export_and_import(
    project: Project, signed_in: Callable[[str], Client]
) -> None:
    """The pages have no link for others."""
    del project
    editor = signed_in("editor")
    for path in ("/settings/file/", "/settings/file/export/"):
        assert editor.get(path).status_code == 403
    assert editor.post("/settings/file/", {"text": ALL}).status_code == 403
    assert "/settings/file/" not in text(editor.get("/settings/quotas/"))
