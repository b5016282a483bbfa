"""Commands end when a server accepts the connection and never answers."""

from __future__ import annotations

import pytest

from console import command_line
from console.cli import connection
from tests.silent_host import SilentHost

ARN = "arn:aws:states:us-east-1:123456789012:execution:orders:run-7"


@pytest.mark.parametrize("words", [("fetch", ARN), ("pull", "orders"), ("start", "orders")])
def test_a_silent_server_ends_a_command(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line names the address; the exit code is 1. Only StartSyncExecution waits for minutes."""
    assert connection._ANSWER_S <= 60 < connection.SYNC_ANSWER_S
    monkeypatch.setattr(connection, "_ANSWER_S", 0.05)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    host = SilentHost()
    try:
        with pytest.raises(SystemExit) as end:
            command_line.main([*words, "--endpoint-url", host.url])
    finally:
        host.close()
    errors = capsys.readouterr().err
    assert end.value.code == 1
    assert errors.startswith(f'stateyard: Read timeout on endpoint URL: "{host.url}')
    assert len(errors.splitlines()) == 1
