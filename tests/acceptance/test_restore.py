"""Everything that ran at the time of a backup goes on after it was restored."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from tests.acceptance.server import wait_for_end
from tests.chaos.shapes import SHAPES
from tests.chaos.team_server import TeamServer, machine_arn
from tests.postgres import Postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.acceptance
WANTED = [shape for shape in SHAPES if shape.name != "activity"]


class OnPostgres:
    """A web process and two workers, saved by ``pg_dump``."""

    def __init__(self, folder: Path) -> None:
        self.server = Postgres(folder / "pg")
        self.yard = TeamServer(folder, self.server.url)
        self.dump = folder / "yard.dump"

    def start(self) -> None:
        """Start all processes."""
        self.yard.start_web()
        self.yard.start_workers(2)

    def backup(self) -> None:
        """As docs/how-to/backup.md has it."""
        self.server.tool("pg_dump", "--format=custom", f"--file={self.dump}", "postgres")

    def restore(self) -> None:
        """As docs/how-to/backup.md has it."""
        way = ("--clean", "--if-exists", "--dbname=postgres")
        self.server.tool("pg_restore", *way, str(self.dump))

    def end(self) -> None:
        """End all for good."""
        self.yard.stop()
        self.server.stop("fast")


class OnSqlite:
    """One process, saved by SQLite's own backup while it runs."""

    def __init__(self, folder: Path) -> None:
        self.yard = TeamServer(folder, None)
        self.start = self.yard.start_web
        self.end = self.yard.stop
        self.database = folder / "data" / "stateyard.sqlite3"
        self.copy = folder / "yard.sqlite3"

    def backup(self) -> None:
        """What ``.backup`` of the sqlite3 shell does."""
        with (
            closing(sqlite3.connect(self.database)) as source,
            closing(sqlite3.connect(self.copy)) as target,
        ):
            source.backup(target)

    def restore(self) -> None:
        """As docs/how-to/backup.md has it."""
        for name in ("-wal", "-shm"):
            self.database.with_name(self.database.name + name).unlink(missing_ok=True)
        shutil.copyfile(self.copy, self.database)


PLACES = [
    pytest.param(OnSqlite, id="sqlite"),
    pytest.param(OnPostgres, id="postgresql", marks=pytest.mark.postgres_only),
]


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A server with state machines of every shape."""
    folder = Path(tempfile.mkdtemp(prefix="stateyard-restore-"))
    folder.chmod(0o755)
    place = request.param(folder)
    place.start()
    place.yard.prepare()
    yield place
    place.end()
    shutil.rmtree(folder, ignore_errors=True)


def run(yard: TeamServer, shape: str, number: int) -> str:
    """Start an execution of a shape."""
    arn: str = yard.client().start_execution(
        stateMachineArn=machine_arn(shape), input=json.dumps({"n": number})
    )["executionArn"]
    return arn


def test_what_ran_at_the_backup_goes_on_after_the_restore(place: Any) -> None:
    """Each with its own output; what came later is gone; the rows contradict nothing."""
    yard = place.yard
    arns = {run(yard, shape.name, n): (shape, n) for n in range(3) for shape in WANTED}
    time.sleep(0.3)
    place.backup()
    later = run(yard, WANTED[0].name, 99)
    yard.stop()
    place.restore()
    assert "epoch" in yard.manage("bump_epoch")
    place.start()
    client = yard.client()
    for arn, (shape, number) in arns.items():
        answer = wait_for_end(client, arn)
        assert answer["status"] == "SUCCEEDED", (shape.name, answer)
        assert json.loads(answer["output"]) == shape.output(number), shape.name
    with pytest.raises(ClientError, match="ExecutionDoesNotExist"):
        client.describe_execution(executionArn=later)
    checked = yard._run("check_invariants")
    assert checked.returncode == 0, checked.stdout + checked.stderr
