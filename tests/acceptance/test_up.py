"""``manage.py up`` starts everything, safely."""

from __future__ import annotations

import http.cookiejar
import json
import re
import stat
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError

from console.samples import MACHINES
from tests import initial_database
from tests.acceptance.readme import typed
from tests.acceptance.server import ROOT, Server, free_port, wait_for_end
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.acceptance


def test_first_start_makes_private_files(up: Server) -> None:
    """Secrets lie in the data folder, readable by their owner only."""
    for name in ("secret", "credentials", "login-url"):
        mode = stat.S_IMODE((up.data / name).stat().st_mode)
        assert mode == 0o600, name
    assert (up.data / "credentials").read_text(encoding="utf-8").startswith("[stateyard]\n")


def test_files_are_private_in_a_folder_that_others_may_enter(tmp_path: Path) -> None:
    """Files are private, and a start mends those that an earlier version wrote for everybody."""
    data = tmp_path / "open"
    data.mkdir(mode=0o755)
    private = {"secret", "credentials", "login-url", "address", "stateyard.sqlite3"}
    private |= {f"stateyard.sqlite3-{more}" for more in ("wal", "shm")}
    for _ in range(2):
        server = Server(data, migrated=False).start()
        try:
            modes = {name: stat.S_IMODE((data / name).stat().st_mode) for name in private}
        finally:
            server.stop()
        assert modes == dict.fromkeys(private, 0o600)
        for path in data.iterdir():
            path.chmod(0o644)


def test_samples_are_loaded_into_a_project_of_their_own(tmp_path: Path) -> None:
    """Every sample is there, by its name, and no list of the default project shows one."""
    server = Server(tmp_path / "data").start()
    try:
        samples, own = server.client(profile="stateyard-samples"), server.client()
        names = {machine["name"] for machine in samples.list_state_machines()["stateMachines"]}
        assert names == {sample.name for sample in MACHINES}
        assert own.list_state_machines()["stateMachines"] == []
        assert own.list_activities()["activities"] == []
        arn = samples.list_state_machines()["stateMachines"][0]["stateMachineArn"]
        with pytest.raises(own.exceptions.StateMachineDoesNotExist):
            own.describe_state_machine(stateMachineArn=arn)
    finally:
        server.stop()


def test_an_empty_server_has_no_samples_and_stays_so(tmp_path: Path) -> None:
    """No machines and no activities with ``--empty``, and none at later starts without it."""
    server = Server(tmp_path / "data", options=("--empty",))
    for options in ((), ("--empty",)):
        server.start()
        client = server.client()
        assert client.list_state_machines()["stateMachines"] == []
        assert client.list_activities()["activities"] == []
        server.stop()
        server.options = options


def test_empty_takes_the_functions_of_samples_away_that_are_there(tmp_path: Path) -> None:
    """Machines of an earlier start stay, and call what is registered: here nothing."""
    server = Server(tmp_path / "data").start()
    server.stop()
    server.options = ("--empty",)
    server.start()
    client = server.client(profile="stateyard-samples")
    arn = "arn:aws:states:us-east-1:111111111111:stateMachine:PutMessage"
    started = client.start_execution(stateMachineArn=arn)
    ended = wait_for_end(client, started["executionArn"])
    server.stop()
    assert ended["error"] == "Lambda.ResourceNotFoundException"


def open_link(url: str, *, press: bool = False) -> tuple[int, str]:
    """Open a link as a fresh browser would, and press its button if ``press``.

    Return status and final address.
    """
    browser = urllib.request.build_opener(
        urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
    )
    try:
        with browser.open(url, timeout=PATIENCE_S) as answer:
            page, seen = answer.read().decode(), (answer.status, answer.url)
        if not press:
            return seen
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
        assert token is not None
        form = urllib.parse.urlencode({"csrfmiddlewaretoken": token[1]}).encode()
        with browser.open(url, data=form, timeout=PATIENCE_S) as answer:
            return answer.status, answer.url
    except urllib.error.HTTPError as error:
        error.close()
        return error.code, error.url


def test_login_link_works_once(up: Server) -> None:
    """Opening the link uses nothing up; its button opens the console once.

    ``login_url`` makes another link.
    """
    command = [sys.executable, "manage.py", "login_url", "--data", str(up.data)]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    url = process.stdout.strip()
    assert url.startswith(up.url)
    assert up.login_url() == url
    assert open_link(url) == (200, url)
    assert open_link(url, press=True) == (200, f"{up.url}/")
    assert open_link(url)[0] == 410
    assert open_link(f"{up.url}/login/made-up/")[0] == 410


def test_pages_ask_for_login(up: Server) -> None:
    """Without a session every page leads to the login."""
    assert open_link(f"{up.url}/machines/")[1].startswith(f"{up.url}/login/")


def test_second_server_on_one_folder_is_refused(up: Server, tmp_path: Path) -> None:
    """A clear message, and the first goes on."""
    del tmp_path
    done = run_up("--data", str(up.data), "--port", str(free_port()))
    assert done.returncode == 1
    assert "another `manage.py up` is using this folder" in done.stderr


def test_port_in_use_is_named(up: Server, tmp_path: Path) -> None:
    """A clear message that names the port."""
    done = run_up("--data", str(tmp_path / "d"), "--port", str(up.port))
    assert done.returncode == 1
    assert f"--port {up.port}: something else is listening" in done.stderr


def test_who_reads_the_address_may_connect_at_once(tmp_path: Path) -> None:
    """A script waits for the line and calls: it is answered, not refused."""
    initial_database.copy_to(tmp_path / "data")
    command = [sys.executable, "manage.py", "up", "--empty", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--data", str(tmp_path / "data")], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        line = next(line for line in process.stdout if "Stateyard is at " in line)
        address = line.split()[-1]
        with urllib.request.urlopen(f"{address}/login/", timeout=PATIENCE_S) as answer:
            assert answer.status == 200
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


def run_up(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``manage.py up`` that is expected to end at once."""
    command = [sys.executable, "manage.py", "up", *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
    )


def test_any_key_is_taken_only_where_that_was_asked_for(tmp_path: Path) -> None:
    """A made-up key acts as the owner, and each page says so."""
    server = Server(tmp_path / "data", options=("--insecure-accept-any-key",))
    server.start()
    try:
        made_up = server.client(key="AKIAMADEUPMADEUPMADE", secret="x")
        assert made_up.list_state_machines()["stateMachines"] == []
        made_up.create_activity(name="of-anybody")
        assert server.client().list_activities()["activities"][0]["name"] == "of-anybody"
        with urllib.request.urlopen(f"{server.url}/login/", timeout=PATIENCE_S) as answer:
            assert "This server does not check signatures" in answer.read().decode()
    finally:
        server.stop()


@pytest.mark.parametrize("option", ["--insecure-accept-any-key", "--allow-reset"])
def test_what_is_for_throw_away_use_is_refused_elsewhere(tmp_path: Path, option: str) -> None:
    """Another address than loopback is refused with the reason before anything is served."""
    command = [sys.executable, "manage.py", "up", "--data", str(tmp_path), "--host", "0.0.0.0"]
    command += ["--port", str(free_port()), option]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "wanted a loopback address" in done.stderr


def post_reset(server: Server, **headers: str) -> int:
    """Ask for a reset; return the status."""
    request = urllib.request.Request(f"{server.url}/reset", method="POST", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_a_reset_empties_a_server_that_works(tmp_path: Path) -> None:
    """What ran is gone, its name is free, and what is made anew is what runs."""
    server = Server(tmp_path / "data", options=("--allow-reset",)).start()
    arn = "arn:aws:states:us-east-1:123456789012:stateMachine:m"
    wait = {"Type": "Wait", "Seconds": 600, "End": True}
    try:
        client = server.client()
        for state, status in ((wait, "RUNNING"), ({"Type": "Succeed"}, "SUCCEEDED")):
            definition = json.dumps({"StartAt": "S", "States": {"S": state}})
            client.create_state_machine(
                name="m", definition=definition, roleArn="arn:aws:iam::123456789012:role/any"
            )
            started = client.start_execution(stateMachineArn=arn, name="x")
            if status == "SUCCEEDED":
                wait_for_end(client, started["executionArn"])
            execution = client.describe_execution(executionArn=started["executionArn"])
            assert execution["status"] == status
            assert post_reset(server) == 403  # a page of another site can send no such header
            assert post_reset(server, **{"X-Stateyard-Reset": "yes"}) == 204
            assert client.list_state_machines()["stateMachines"] == []
            with pytest.raises(client.exceptions.ExecutionDoesNotExist):
                client.describe_execution(executionArn=started["executionArn"])
        samples = server.client(profile="stateyard-samples")
        assert len(samples.list_state_machines()["stateMachines"]) == len(MACHINES)
        assert "Traceback" not in server.log()
    finally:
        server.stop()


def test_nobody_resets_a_server_that_was_not_asked_to_allow_it(up: Server) -> None:
    """There is no such page."""
    assert post_reset(up, **{"X-Stateyard-Reset": "yes"}) == 404


def test_the_lines_that_are_printed_set_up_a_client(up: Server, tmp_path: Path) -> None:
    """Whoever pastes them has listed the state machines."""
    lines = up.log().partition("in their shell:\n")[2].partition("\nCtrl-C")[0]
    assert "stateMachines" in typed(tmp_path, lines)


def test_the_interpreter_of_python_functions_is_printed(up: Server) -> None:
    """It is the server's own; who installs a package for a function sees where."""
    assert f"  Python functions run with:    {sys.executable}\n" in up.log()


def test_a_dummy_key_is_told_what_to_do(up: Server) -> None:
    """AWS's own words come first; then how to get on."""
    with pytest.raises(ClientError, match=r"is invalid.*--insecure-accept-any-key") as refused:
        up.client(key="dummy", secret="dummy").list_state_machines()
    assert refused.value.response["Error"]["Code"] == "UnrecognizedClientException"
