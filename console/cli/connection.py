"""Connect to a server with the environment's AWS profile, else with that of the data folder.

boto3 finds endpoint, key and region as for every AWS client. Without any of them, the profile
``stateyard`` of the data folder is used: beside ``stateyard up`` no set-up is needed. A real AWS
endpoint is refused without ``--aws``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import boto3
import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError

from console.cli.sources import Account
from console.config import former_name
from console.config.client_profile import profile_in
from console.config.data_folder import data_folder

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

_AWS_HOSTS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws", ".aws.dev")
_CONFIG = Config(
    inject_host_prefix=False,
    connect_timeout=10,
    read_timeout=330,  # StartSyncExecution answers within five minutes
    retries={"max_attempts": 3, "mode": "standard"},
)
_SET_UP = ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SHARED_CREDENTIALS_FILE")


class ConnectionRefused(Exception):
    """No server can be reached, or AWS without ``--aws``. The message is one line."""


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

    def client(self, service: str) -> Any:
        """Return a boto3 client; raise ``ConnectionRefused`` for AWS without ``--aws``."""
        try:
            client = self.session.client(service, endpoint_url=self.endpoint_url, config=_CONFIG)
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
        if self.account_of_key is not None:
            return self.account_of_key
        identity = self.client("sts").get_caller_identity()
        region = self.states.meta.region_name
        return Account(identity["Account"], region, identity["Arn"].split(":")[1])

    @cached_property
    def web_address(self) -> str:
        """Return the URL of the server's pages."""
        if self.endpoint_url:
            self._check_address(self.endpoint_url)
            return self.endpoint_url.rstrip("/")
        return str(self.states.meta.endpoint_url).rstrip("/")


def connect(options: Namespace) -> Connection:
    """Return the connection selected by the options of a command."""
    former_name.adopt_variables()
    core = botocore.session.Session(profile=options.profile)
    region = options.region
    credentials = _data_profile(options)
    if credentials is not None:
        core = botocore.session.Session(profile=profile_in(credentials))
        core.set_config_variable("credentials_file", str(credentials))
    try:
        session = boto3.Session(botocore_session=core, region_name=region)
        if session.region_name is None:
            session = boto3.Session(botocore_session=core, region_name="us-east-1")
    except BotoCoreError as error:
        raise ConnectionRefused(str(error)) from None
    former_name.print_uses()
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
