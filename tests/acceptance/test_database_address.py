"""Connections are as the address says: with TLS or not at all, and to the host that writes."""

from __future__ import annotations

import contextlib
import datetime as dt
import ipaddress
import shutil
import socket
import ssl
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from console.config.database_address import parse_database_address
from console.db import postgres
from tests.chaos.silence import SilentProxy
from tests.chaos.team_server import TeamServer
from tests.postgres import FAST, Postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.acceptance, pytest.mark.postgres_only]
_SSL_REQUEST = (8).to_bytes(4) + (80877103).to_bytes(4)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder that PostgreSQL's own user may enter."""
    path = Path(tempfile.mkdtemp(prefix="stateyard-address-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Postgres]:
    """A PostgreSQL without TLS."""
    server = Postgres(folder / "pg", *FAST)
    yield server
    server.stop()


class TlsProxy(SilentProxy):
    """Speaks TLS to clients that ask for it, and passes everything on to a server without."""

    def __init__(self, server: str, certificate: Path) -> None:
        """``certificate``: a file with the key, too."""
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate)
        super().__init__(server)

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, contextlib.suppress(OSError):
            assert client.recv(8, socket.MSG_WAITALL) == _SSL_REQUEST
            client.sendall(b"S")
            with self._context.wrap_socket(client, server_side=True) as inside:
                server.connect(self._server)
                back = threading.Thread(target=_copy, args=(server, inside), daemon=True)
                back.start()
                _copy(inside, server)
                back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def make_certificate(path: Path) -> Path:
    """Write a certificate of its own authority for this host, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, path.stem)])
    now = dt.datetime.now(dt.UTC)
    local = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([local]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(secret + certificate.public_bytes(serialization.Encoding.PEM))
    return path


def connect(url: str) -> tuple[bool, str, str]:
    """Connect to an address; return whether by TLS, to which host, and the connection's name."""
    parameters: dict[str, Any] = {**postgres.TIMEOUTS, **parse_database_address("URL", url)}
    with postgres.WatchedConnection.connect(**parameters, autocommit=True) as own:
        row = own.execute("SELECT current_setting('application_name')").fetchall()[0]
        return own.pgconn.ssl_in_use, own.info.host, row[0]


@pytest.mark.parametrize("mode", ["require", "verify-full"])
def test_a_server_without_tls_is_refused(server: Postgres, folder: Path, mode: str) -> None:
    """What asks for TLS never sends a word in plain text."""
    url = f"{SilentProxy(server.socket).url}?sslrootcert={make_certificate(folder / 'ca.pem')}"
    assert connect(f"{url}&sslmode=prefer")[0] is False
    with pytest.raises(psycopg.OperationalError, match="SSL"):
        connect(f"{url}&sslmode={mode}")


def test_the_certificate_is_checked(server: Postgres, folder: Path) -> None:
    """A certificate of another authority is refused, and one for another host."""
    own = make_certificate(folder / "own.pem")
    proxy = TlsProxy(server.socket, own)
    assert connect(f"{proxy.url}?sslmode=require")[0] is True
    assert connect(f"{proxy.url}?sslmode=verify-full&sslrootcert={own}")[0] is True
    other = make_certificate(folder / "other.pem")
    with pytest.raises(psycopg.OperationalError, match="certificate"):
        connect(f"{proxy.url}?sslmode=verify-ca&sslrootcert={other}")
    by_name = proxy.url.replace("127.0.0.1", "localhost")
    assert connect(f"{by_name}?sslmode=verify-ca&sslrootcert={own}")[0] is True
    with pytest.raises(psycopg.OperationalError, match="localhost"):
        connect(f"{by_name}?sslmode=verify-full&sslrootcert={own}")


def test_the_name_of_connections_begins_as_the_address_says(server: Postgres) -> None:
    """And is another one for each, by which a silent connection is found in the server."""
    names = [connect(f"{server.url}&application_name={'n' * 32}")[2] for _ in range(2)]
    assert all(name.startswith("n" * 32 + " ") and len(name) <= 63 for name in names)
    assert names[0] != names[1]


def test_the_host_that_takes_writes_is_found(server: Postgres, folder: Path) -> None:
    """Also behind hosts that are silent or not there, and a standby until it is promoted."""
    silent = socket.create_server(("127.0.0.1", 0))  # takes connections, and says nothing
    standby = server.replica(folder / f"standby-{silent.getsockname()[1]}")
    try:
        hosts = ["127.0.0.1", "127.0.0.1", str(standby.folder), str(server.folder)]
        ports = f"{silent.getsockname()[1]},1,5432,5432"
        url = f"postgres://postgres@/postgres?host={','.join(hosts)}&port={ports}&connect_timeout=2"
        assert connect(url)[1] == str(server.folder)
        standby.promote()
        assert connect(url)[1] == str(standby.folder)
    finally:
        standby.stop()
        silent.close()


@pytest.mark.parametrize("command", ["up", "web", "worker"])
def test_a_process_does_not_start_without_the_tls_it_is_to_use(
    server: Postgres, tmp_path: Path, command: str
) -> None:
    """It says so in one line, as psql does."""
    yard = TeamServer(tmp_path, f"{SilentProxy(server.socket).url}?sslmode=require")
    complaint = yard.complaint(command, *(("--port", "0") if command != "worker" else ()))
    assert "does not support SSL, but SSL was required" in complaint
    assert len(complaint.strip().splitlines()) == 1, complaint
