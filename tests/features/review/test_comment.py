"""The recipes for GitHub and GitLab post one comment, and update it."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from console.features.review.markdown import MARKER
from tests.acceptance.server import ROOT
from tests.features.deploy.test_deploy import clean
from tests.features.review.golden import commit
from tests.features.review.test_review import PASS, TWO, written

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.acceptance

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
GH = """
import json, os, pathlib, sys
words = sys.argv[1:]
with open(os.environ["CALLS"], "a") as calls:
    calls.write(json.dumps(words) + "\\n")
if words[1] == "user":
    sys.exit(print(os.environ["LOGIN"]) if "LOGIN" in os.environ else "HTTP 403")
listing = "--jq" in words
if os.environ.get("REFUSED") == ("list" if listing else "write"):
    sys.exit("HTTP 403: Resource not accessible by integration")
if listing:
    print(os.environ.get("COMMENTS", ""), end="")
"""
"""In place of the program ``gh``: it writes its words down, and lists the given ids."""


def post_review(folder: Path, code: int = 0, **env: str) -> tuple[list[list[str]], str, str]:
    """Run the step of the action; return the calls of ``gh``, what was printed, and the summary."""
    (step,) = [step for step in ACTION["runs"]["steps"] if step["name"] == "Review"]
    repository, programs = folder / "repository", folder / "bin"
    base = commit(repository, {"a b/a.asl.json": written(PASS), "c.asl.json": written(PASS)})
    commit(repository, {"a b/a.asl.json": written(TWO), "c.asl.json": written(TWO)})
    programs.mkdir()
    (folder / "gh.py").write_text(GH)
    command = f"PYTHONPATH={shlex.quote(str(ROOT))} exec {sys.executable}"
    for name, rest in (("stateyard", "-m console.command_line"), ("gh", str(folder / "gh.py"))):
        (programs / name).write_text(f'#!/bin/sh\n{command} {rest} "$@"\n')
        (programs / name).chmod(0o755)
    summary, calls = folder / "summary", folder / "calls"
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=repository,
        env=clean()
        | {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "CALLS": str(calls),
            "SERVER": "",
            "RUNNER_TEMP": str(folder),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_REPOSITORY": "team/flows",
            "NUMBER": "7",
            "BASE": base,
            "PATHS": "c.asl.json",
            "STATEYARD_DATA": str(folder / "data"),
            **env,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    if code:
        return [], done.stdout, ""
    lines = calls.read_text().splitlines() if calls.exists() else []
    return [json.loads(line) for line in lines], done.stdout, summary.read_text("utf-8")


def test_the_action_imports_nothing_from_the_checkout(tmp_path: Path) -> None:
    """A pull request has a file that Python would take for the program that installs."""
    (step,) = [step for step in ACTION["runs"]["steps"] if step["name"] == "Install"]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "pip.py").write_text("open('taken', 'w').close()")
    env = clean() | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "PACKAGE": "--version"}
    subprocess.run(["bash", "-c", step["run"]], cwd=tmp_path, env=env, check=False)
    assert not (tmp_path / "taken").exists()
    subprocess.run(["bash", "-c", "python -m pip"], cwd=tmp_path, env=env, check=True)
    assert (tmp_path / "taken").exists()


def test_the_action_posts_a_comment(tmp_path: Path) -> None:
    """With the file as its text, which is in the summary, too."""
    (_, _, posted), printed, summary = post_review(tmp_path)
    report = tmp_path / "stateyard-review/review.md"
    assert posted[:5] == [
        "api",
        "--silent",
        "--method",
        "POST",
        "repos/team/flows/issues/7/comments",
    ]
    assert posted[5:] == ["--field", f"body=@{report}"]
    assert summary == report.read_text("utf-8")
    assert summary.startswith(MARKER)
    assert "### `c` changed" in summary
    assert "### `a`" not in summary  # of another path
    assert "::warning" not in printed


def test_the_action_updates_its_comment(tmp_path: Path) -> None:
    """The first of its own with the marker: a person may have written another one."""
    ((_, listed, posted), _, _) = post_review(tmp_path, COMMENTS="41\n42\n")
    query = listed[listed.index("--jq") + 1]
    assert f'startswith("{MARKER}")' in query
    assert '.user.login == "github-actions[bot]"' in query
    assert posted[3:5] == ["PATCH", "repos/team/flows/issues/comments/41"]


def test_a_token_of_a_person_finds_its_comment(tmp_path: Path) -> None:
    """By the name of that person."""
    (_, listed, _), _, _ = post_review(tmp_path, LOGIN="ada")
    assert '.user.login == "ada"' in listed[listed.index("--jq") + 1]


@pytest.mark.parametrize("refused", ["list", "write"])
def test_a_token_that_may_not_write_is_no_failure(refused: str, tmp_path: Path) -> None:
    """That of a fork: the summary has the review. Nothing is posted twice."""
    calls, printed, summary = post_review(tmp_path, REFUSED=refused)
    assert len(calls) == (2 if refused == "list" else 3)
    assert "::warning::The token may not comment" in printed
    assert "### `c` changed" in summary


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"NUMBER": ""}, "::error::review: got no pull request"),
        ({"OTHERS": "workflows/"}, "::error::review: got deploy, branch, tests"),
    ],
)
def test_other_uses_of_the_step_are_refused(
    env: dict[str, str], message: str, tmp_path: Path
) -> None:
    """Nothing is read over in silence."""
    assert post_review(tmp_path, code=1, **env)[1].startswith(message)


class _Notes(BaseHTTPRequestHandler):
    """The notes of a merge request, as GitLab's API has them: 100 a page."""

    notes: list[dict[str, Any]]
    tokens: set[str]

    def do_GET(self) -> None:
        if self.path == "/api/v4/user":
            self._answer({"id": 5})
            return
        query = parse_qs(urlsplit(self.path).query)
        page, size = int(query["page"][0]), int(query["per_page"][0])
        self._answer(self.notes[(page - 1) * size : page * size])

    def do_POST(self) -> None:
        note = {"id": len(self.notes) + 1, "author": {"id": 5}, "body": self._body()}
        self.notes.append(note)
        self._answer(note)

    def do_PUT(self) -> None:
        note = next(note for note in self.notes if self.path.endswith(f"/notes/{note['id']}"))
        note["body"] = self._body()
        self._answer(note)

    def _body(self) -> str:
        size = int(self.headers["Content-Length"])
        return str(json.loads(self.rfile.read(size))["body"])

    def _answer(self, value: Any) -> None:
        assert self.path.startswith(("/api/v4/user", "/api/v4/projects/3/merge_requests/9/notes"))
        self.tokens.add(self.headers["PRIVATE-TOKEN"])
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(value).encode())

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def notes() -> Iterator[tuple[str, type[_Notes]]]:
    """Yield the address of a GitLab with 150 notes of a person who copies, and its handler."""
    listed = [
        {"id": number, "author": {"id": 4}, "body": f"{MARKER} {number}"}
        for number in range(1, 151)
    ]
    handler = type("Notes", (_Notes,), {"notes": listed, "tokens": set()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/api/v4", handler
    server.shutdown()
    server.server_close()


def test_the_recipe_for_gitlab_updates_its_note(
    notes: tuple[str, type[_Notes]], tmp_path: Path
) -> None:
    """The second run finds the note on a later page."""
    address, handler = notes
    page = (ROOT / "docs/how-to/review.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "stateyard-review").mkdir()
    env = {"CI_API_V4_URL": address, "CI_PROJECT_ID": "3", "CI_MERGE_REQUEST_IID": "9"}
    for text in ("first", "second"):
        (tmp_path / "stateyard-review/review.md").write_text(f"{MARKER}\n{text}\n")
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=tmp_path,
            env={**os.environ, **env, "REVIEW_TOKEN": "glpat"},
            check=True,
        )
        assert len(handler.notes) == 151
        assert handler.notes[-1]["body"] == f"{MARKER}\n{text}\n"
    assert handler.tokens == {"glpat"}
