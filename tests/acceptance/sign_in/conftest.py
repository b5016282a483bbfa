"""A server with two providers, on the database of the run; nothing here runs without Node."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import psycopg
import pytest

from tests.acceptance.server import Server, free_port
from tests.postgres import FAST, Postgres
from tests.waiting import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

collect_ignore_glob = [] if shutil.which("npm") and shutil.which("node") else ["test_*.py"]
_SCRIPT = Path(__file__).with_name("provider.mjs")
GROUPS = {
    "*": {"welcome": "viewer"},
    "dev": {"default": "editor", "not-there": "owner"},
    "leads": {"default": "owner"},
    "readers": {"default": "viewer"},
}


class Provider:
    """A process of oidc-provider. ``people``: subject -> claims. ``ports``: of the server."""

    def __init__(self, packages: Path, host: str, provider_id: str, *ports: int) -> None:
        self.port = free_port()
        self.host = host
        self.issuer = f"http://{host}:{self.port}"
        self.people: dict[str, dict[str, Any] | None] = {}
        path = f"/sign-in/{provider_id}/callback/"
        callbacks = [f"http://127.0.0.1:{port}{path}" for port in ports]
        command = ["node", _SCRIPT.name, str(self.port), host, *callbacks]
        self._process = subprocess.Popen(command, cwd=packages, stdout=subprocess.DEVNULL)
        wait_until(self._answers, PATIENCE_S)

    def _answers(self) -> bool:
        try:
            self.control()
        except httpx.TransportError:
            return False
        return True

    def control(self, falsify: str = "", /, **people: dict[str, Any] | None) -> None:
        """Set claims of people, by their subjects, and how all answers are falsified.

        A person without claims has no account any more.
        """
        self.people |= people
        sent = {"people": self.people, "falsify": falsify}
        httpx.post(f"http://127.0.0.1:{self.port}/control", json=sent).raise_for_status()

    def logout_token(self, subject: str, falsify: str = "") -> str:
        """Return a logout token of a person, falsified or not."""
        sent = {"subject": subject, "falsify": falsify}
        address = f"http://127.0.0.1:{self.port}/logout-token"
        return httpx.post(address, json=sent).raise_for_status().text

    def stop(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.wait(PATIENCE_S)


class SignInYard:
    """A server, its providers ``corp`` and ``partner``, and its database."""

    def __init__(self, packages: Path, folder: Path, postgres: str, **env: str) -> None:
        port = free_port()
        self.corp = Provider(packages, "localhost", "corp", port)
        self.partner = Provider(packages, "127.0.0.1", "partner", port)
        self.postgres = postgres
        self._visitors: list[httpx.Client] = []
        client: dict[str, Any] = {
            "client_id": "stateyard",
            "client_secret": "a secret of the test",
        }
        shared = {**client, "scopes": ["groups"]}
        corp = {
            **shared,
            "name": "Corp SSO",
            "issuer": self.corp.issuer,
            "groups": GROUPS,
            "administrators": ["platform"],
        }
        partner = {**shared, "issuer": self.partner.issuer, "groups": {"*": {"default": "viewer"}}}
        gone = {**client, "issuer": f"http://127.0.0.1:{free_port()}"}
        settings: dict[str, Any] = {
            "STATEYARD_OIDC": json.dumps({"corp": corp, "partner": partner, "gone": gone}),
            "STATEYARD_DATABASE_URL": postgres,
            **env,
        }
        self.server = Server(folder / "data", port, migrated=False, **settings).start()

    def stop(self) -> None:
        """End all processes."""
        for client in self._visitors:
            client.close()
        self.server.stop()
        self.corp.stop()
        self.partner.stop()

    def visitor(self, who: str = "") -> httpx.Client:
        """Return the browser of a person, whom the providers know by a cookie."""
        client = httpx.Client(base_url=self.server.url, follow_redirects=True, timeout=PATIENCE_S)
        self._visitors.append(client)
        if who:
            for domain in ("localhost.local", "127.0.0.1"):
                client.cookies.set("who", who, domain=domain)
        return client

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        if self.postgres:
            with psycopg.connect(self.postgres) as connection:
                return list(connection.execute(query))
        file = self.server.data / "stateyard.sqlite3"
        with contextlib.closing(sqlite3.connect(file, timeout=20)) as database:
            return list(database.execute(query))

    def roles(self) -> dict[tuple[str, str], str]:
        """Return person and project -> role."""
        memberships = self.rows(
            "SELECT u.username, p.name, m.role FROM console_membership m"
            " JOIN auth_user u ON u.id = m.user_id JOIN console_project p ON p.id = m.project_id"
        )
        return {(person, project): role for person, project, role in memberships}

    def audit(self, action: str) -> list[tuple[Any, ...]]:
        """Return actor, target and reason of the entries of an action, the oldest first."""
        return self.rows(
            "SELECT actor, target, reason FROM console_auditentry"
            f" WHERE action = '{action}' ORDER BY id"
        )


@pytest.fixture(scope="package")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the npm package and the script."""
    folder = tmp_path_factory.mktemp("provider")
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "oidc-provider@9", "jose@6"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=300)
    shutil.copy(_SCRIPT, folder)
    return folder


@pytest.fixture(
    scope="package", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres_only)]
)
def yard(request: pytest.FixtureRequest, packages: Path) -> Iterator[SignInYard]:
    """Return a running server with its providers."""
    folder = Path(tempfile.mkdtemp(prefix="stateyard-sign-in-"))
    folder.chmod(0o755)
    postgres = (
        Postgres(folder / "pg", *FAST, migrated=True) if request.param == "postgres" else None
    )
    yard = SignInYard(packages, folder, postgres.url if postgres else "")
    yield yard
    yard.stop()
    if postgres:
        postgres.stop("fast")
    shutil.rmtree(folder, ignore_errors=True)
