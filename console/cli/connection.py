"""Connect to a server with the AWS profile of the environment, else of the data folder.

boto3 finds endpoint, key and region as for every AWS client. With ``--data``, or if none of
``AWS_PROFILE``, ``AWS_ACCESS_KEY_ID`` and ``AWS_SHARED_CREDENTIALS_FILE`` is set, the profile
``stateyard`` of the data folder is used instead: beside ``stateyard up`` no set-up is needed. It is
never used with ``--profile`` or ``--aws``. A real AWS endpoint is refused without ``--aws``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError

from console.config.data_folder import data_folder

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    import boto3
    from botocore.awsrequest import AWSRequest, AWSResponse
    from botocore.config import Config

    from console.cli.account import Account

_AWS_HOSTS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws", ".aws.dev")
_ANSWER_S = 30
"""The number of seconds until a silent server counts as unreachable; each call has 3 attempts."""
SYNC_ANSWER_S = 330
"""The same for StartSyncExecution, which answers within five minutes."""
_SET_UP = ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SHARED_CREDENTIALS_FILE")


def _configuration(more: Config | None) -> Config:
    from botocore.config import Config

    own = Config(
        inject_host_prefix=False,
        connect_timeout=10,
        read_timeout=_ANSWER_S,
        retries={"max_attempts": 3, "mode": "standard"},
    )
    return own.merge(more) if more else own


class ConnectionRefused(Exception):
    """No server can be reached, or AWS without ``--aws``. The message is one line."""


def send_request(request: AWSRequest, seconds: float) -> AWSResponse:
    """Send a request as a client of botocore does; raise ``BotoCoreError`` without an answer."""
    from botocore.httpsession import URLLib3Session
    from botocore.utils import get_environ_proxies

    session = URLLib3Session(proxies=get_environ_proxies(request.url), timeout=seconds)
    try:
        return session.send(request.prepare())
    finally:
        session.close()


def add_connection_arguments(parser: ArgumentParser) -> None:
    """Add the options that select the server."""
    group = parser.add_argument_group("server")
    group.add_argument("--endpoint-url", metavar="URL", help="the server's address")
    group.add_argument("--profile", help="a profile of the AWS configuration")
    group.add_argument("--region", help="the region to work in")
    group.add_argument("--data", metavar="DIR", help="data folder of a server of this machine")
    group.add_argument("--aws", action="store_true", help="allow a real endpoint of AWS")


@dataclass(frozen=True)
class Connection:
    """A server. ``client`` makes a boto3 client for one of its services.

    ``account_of_key``: the account, if it is known without asking the server.
    """

    session: boto3.Session
    endpoint_url: str | None
    aws: bool
    account_of_key: Account | None = None

    def client(self, service: str, config: Config | None = None) -> Any:
        """Return a boto3 client; raise ``ConnectionRefused`` for AWS without ``--aws``."""
        both = _configuration(config)
        try:
            client = self.session.client(service, endpoint_url=self.endpoint_url, config=both)
        except (BotoCoreError, ValueError) as error:
            raise ConnectionRefused(str(error)) from None
        self._check_address(client.meta.endpoint_url)
        return client

    def _check_address(self, address: str) -> None:
        host = urlsplit(address).hostname or ""
        if host.endswith(_AWS_HOSTS) and not self.aws:
            raise ConnectionRefused(
                f"{address} is AWS itself; --aws says that this is meant, "
                "--endpoint-url names a server"
            )

    @cached_property
    def states(self) -> Any:
        """Return the client of Step Functions."""
        return self.client("stepfunctions")

    @cached_property
    def account(self) -> Account:
        """Return the account of the access key."""
        from console.cli.account import Account

        if self.account_of_key is not None:
            return self.account_of_key
        identity = self.client("sts").get_caller_identity()
        region = self.states.meta.region_name
        return Account(identity["Account"], region, identity["Arn"].split(":")[1])

    def machine_arn(self, name: str) -> str:
        """Return the ARN of a state machine, from its name or ARN.

        Raise ``ConnectionRefused`` for a name with a slash or the ending of a definition file:
        commands that accept files look for the file first, so no such file exists.
        """
        if name.startswith("arn:"):
            return name
        if "/" in name or name.endswith((".json", ".yaml", ".yml")):
            raise ConnectionRefused(f"{name}: got no such file")
        return self.account.arn("states", f"stateMachine:{name}")

    @cached_property
    def web_address(self) -> str:
        """Return the URL of the server's pages."""
        if self.endpoint_url:
            self._check_address(self.endpoint_url)
            return self.endpoint_url.rstrip("/")
        return str(self.states.meta.endpoint_url).rstrip("/")


def connect(options: Namespace) -> Connection:
    """Return the connection selected by the options of a command."""
    import boto3  # here: a help needs no client
    import botocore.session

    from console.config.client_profile import PROFILE

    core = botocore.session.Session(profile=options.profile)
    region = options.region
    credentials = _data_profile(options)
    if credentials is not None:
        core = botocore.session.Session(profile=PROFILE)
        core.set_config_variable("credentials_file", str(credentials))
    try:
        session = boto3.Session(botocore_session=core, region_name=region)
        if session.region_name is None:
            session = boto3.Session(botocore_session=core, region_name="us-east-1")
    except BotoCoreError as error:
        raise ConnectionRefused(str(error)) from None
    return Connection(session, options.endpoint_url, options.aws)


def _data_profile(options: Namespace) -> Path | None:
    """Return the credentials file of the data folder, if it is to be used."""
    if options.profile or options.aws:
        return None
    if not options.data and any(os.environ.get(name) for name in _SET_UP):
        return None
    folder = Path(options.data) if options.data else data_folder()
    path = folder / "credentials"
    if not path.is_file():
        if options.data:
            raise ConnectionRefused(f"{path}: got no such file, wanted that of a server's folder")
        return None
    return path
