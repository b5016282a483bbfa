"""Settings that owners make on pages: at once in all processes, one change at a time, sealed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from threading import Barrier, Thread
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError, connection

from console.db import project_settings, sealing
from console.db.audit import Actor
from console.errors import ConflictException, ServiceError, ValidationException
from console.models import AuditEntry, Project, ProjectSetting
from tests.acceptance.server import ROOT
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django.fixtures import Settings

BY = Actor("ana")
KIND = "target"
SECRET = "never to be seen"


@pytest.fixture(autouse=True)
def _nothing_is_remembered() -> Iterator[None]:
    """Let no test see the rows of another."""
    project_settings.forget_settings()
    yield
    project_settings.forget_settings()


def put(project: Project, name: str, value: Any, revision: str = "", **more: Any) -> Any:
    """Save a setting as Ana."""
    return project_settings.put_setting(project, KIND, name, value, BY, revision=revision, **more)


def test_a_change_counts_at_once(project: Project) -> None:
    """What is remembered of a project is void after each change; other projects have nothing."""
    assert project_settings.read_settings("default", KIND) == {}
    saved = put(project, "sqs", {"region": "eu-west-1"}, summary="region eu-west-1")
    assert project_settings.read_value("default", KIND, "sqs") == {"region": "eu-west-1"}
    put(project, "sqs", {"region": "eu-west-3"}, saved.revision)
    assert project_settings.read_value("default", KIND, "sqs") == {"region": "eu-west-3"}
    assert project_settings.read_settings("default", "function") == {}
    assert project_settings.read_settings("another", KIND) == {}
    assert project_settings.read_settings("", KIND) == {}
    (now,) = project_settings.list_settings(project, KIND)
    project_settings.remove_setting(project, KIND, "sqs", BY, revision=now.revision)
    assert project_settings.read_value("default", KIND, "sqs") is None
    entries = AuditEntry.objects.order_by("pk").values_list("actor", "action", "target", "reason")
    assert list(entries) == [
        ("ana", "PutProjectSetting", "target sqs", "region eu-west-1"),
        ("ana", "PutProjectSetting", "target sqs", ""),
        ("ana", "RemoveProjectSetting", "target sqs", ""),
    ]


def test_expired_rows_are_read_by_one_thread(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others return the rows of before meanwhile: all calls of a moment would read them anew."""
    put(project, "sqs", 1)
    _, rows = project_settings.read_settings("default", KIND), project_settings._remembered
    monkeypatch.setattr(project_settings, "_GRACE_S", 60.0)
    rows["default"] = time.monotonic(), rows["default"][1]
    meanwhile: list[Any] = []

    def read_too(execute: Any, *statement: Any) -> Any:
        meanwhile.append(project_settings.read_value("default", KIND, "sqs"))
        return execute(*statement)

    with connection.execute_wrapper(read_too):
        assert project_settings.read_value("default", KIND, "sqs") == 1
    assert meanwhile == [1]


def test_a_lost_signal_delays_it_by_a_second(project: Project) -> None:
    """A row that another process wrote counts after a second without any signal."""
    assert project_settings.read_value("default", KIND, "sqs") is None
    ProjectSetting.objects.create(
        project=project, kind=KIND, name="sqs", value="1", changed_ms=1, changed_by="ana"
    )
    wait_until(lambda: project_settings.read_value("default", KIND, "sqs") == 1, 10)


def test_a_database_that_is_away_leaves_what_was_read(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call of a Task does not fail because its settings cannot be read anew."""
    put(project, "sqs", 1)
    assert project_settings.read_value("default", KIND, "sqs") == 1
    project_settings.forget_settings()

    def away(*_: object, **__: object) -> None:
        raise OperationalError("away")

    monkeypatch.setattr(ProjectSetting.objects, "filter", away)
    assert project_settings.read_value("default", KIND, "sqs") == 1
    with pytest.raises(OperationalError):
        project_settings.read_value("never-read", KIND, "sqs")


def test_a_change_needs_the_newest_revision(project: Project) -> None:
    """Of two owners who change the same setting, the second one is refused, and told by whom."""
    first = put(project, "sqs", 1)
    put(project, "sqs", 2, first.revision)
    with pytest.raises(ConflictException, match="'sqs' was changed meanwhile by ana"):
        put(project, "sqs", 3, first.revision)
    with pytest.raises(ConflictException, match="changed meanwhile"):
        put(project, "sqs", 3)
    with pytest.raises(ConflictException, match="changed meanwhile"):
        project_settings.remove_setting(project, KIND, "sqs", BY, revision=first.revision)
    now = project_settings.find_setting(project, KIND, "sqs")
    assert now is not None
    project_settings.remove_setting(project, KIND, "sqs", BY, revision=now.revision)
    with pytest.raises(ConflictException, match="was removed meanwhile"):
        put(project, "sqs", 3, now.revision)
    again = put(project, "sqs", 4)
    assert again.revision not in (first.revision, now.revision)
    with pytest.raises(ServiceError, match="There is no target 'sns'"):
        project_settings.remove_setting(project, KIND, "sns", BY, revision="")


def test_of_two_at_once_one_is_saved(project: Project) -> None:
    """Two threads save the same new setting at the same moment."""
    outcomes: list[str] = []
    begin = Barrier(2)

    def save(value: int) -> None:
        begin.wait()
        try:
            outcomes.append(put(project, "sqs", value).revision)
        except ConflictException:
            outcomes.append("refused")
        finally:
            connection.close()

    threads = [Thread(target=save, args=(value,)) for value in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("refused") == 1
    assert ProjectSetting.objects.count() == 1


def test_secrets_are_sealed(project: Project, settings: Settings) -> None:
    """They are in no value and no audit entry, stay on a change without any, and can be removed."""
    first = put(project, "sqs", {}, secrets={"secret": SECRET})
    assert SECRET not in str(list(ProjectSetting.objects.values()))
    assert SECRET not in str(list(AuditEntry.objects.values()))
    assert project_settings.open_setting(first) == {"secret": SECRET}
    second = put(project, "sqs", {"region": "eu-west-1"}, first.revision)
    assert project_settings.open_setting(second) == {"secret": SECRET}
    settings.STATEYARD_SEAL_KEY = bytes(32)
    with pytest.raises(sealing.SealError, match="target/sqs cannot be decrypted"):
        project_settings.open_setting(second)
    third = put(project, "sqs", {}, second.revision, secrets={})
    assert project_settings.open_setting(third) == {}


def test_secrets_open_at_their_place_only(project: Project) -> None:
    """A sealed text that was moved to another project or name, or changed, does not open."""
    sealed = put(project, "sqs", {}, secrets={"secret": SECRET}).sealed
    other = Project.objects.create(name="other", account_id="222222222222")
    for moved_to, name in ((other, "sqs"), (project, "sns")):
        row = ProjectSetting.objects.create(
            project=moved_to, kind=KIND, name=name, value="1", sealed=sealed, changed_ms=1
        )
        setting = project_settings.find_setting(moved_to, row.kind, row.name)
        assert setting is not None
        with pytest.raises(sealing.SealError):
            project_settings.open_setting(setting)
    for text in (sealed[:-8] + "AAAAAAA=", "1:", "1:?", ""):
        with pytest.raises(sealing.SealError):
            sealing.open_secrets(text, f"{project.pk}/target/sqs")
    assert sealing.seal_secrets({}, "a") != sealing.seal_secrets({}, "a")


def test_what_is_too_large_is_refused(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value, a name, and the number of settings have limits."""
    with pytest.raises(ValidationException, match="At most 262144 are stored"):
        put(project, "sqs", "x" * 262_144)
    with pytest.raises(ValidationException, match="at most 256 characters"):
        put(project, "x" * 257, 1)
    with pytest.raises(ValidationException, match="at most 256 characters"):
        put(project, "\x00", 1)
    monkeypatch.setattr(project_settings, "MOST", 1)
    put(project, "sqs", 1)
    with pytest.raises(ValidationException, match="at most 1 settings of this kind"):
        put(project, "sns", 1)
    Project.objects.filter(pk=project.pk).delete()
    with pytest.raises(ServiceError, match="There is no project 'default'"):
        put(project, "sns", 1)


def test_a_server_without_secrets_loads_no_cryptography() -> None:
    """The library costs memory in each process, so it is loaded for the first secret."""
    code = (
        "import sys, django; django.setup(); import console.db.project_settings\n"
        "sys.exit('cryptography' in sys.modules)"
    )
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings"}
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True)
