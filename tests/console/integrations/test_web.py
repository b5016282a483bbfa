"""A web request goes only to the origins that the operator named."""

from __future__ import annotations

from typing import Any

import pytest

from console.integrations import web


@pytest.mark.parametrize(
    ("service", "url", "allowed"),
    [
        ("http", "https://api.example.com/a?b", True),
        ("http", "https://API.example.com/a", True),
        ("http", "http://api.example.com/a", False),
        ("http", "https://api.example.com:444/a", False),
        ("http", "https://api.example.com.evil.org/a", False),
        ("http", "https://api.example.com@evil.org/a", False),
        ("http", "file:///etc/passwd", False),
        ("apigateway", "http://127.0.0.1:9000/dev/x", True),
        ("apigateway", "https://abc.execute-api.eu-west-1.amazonaws.com/dev", True),
        ("apigateway", "https://169.254.169.254/latest", False),
        ("apigateway", "https://evil.org/.execute-api.eu-west-1.amazonaws.com", False),
    ],
)
def test_only_named_origins_are_called(
    settings: Any, service: str, url: str, allowed: bool
) -> None:
    """Scheme, host and port count; what stands before an @ or behind the host does not."""
    settings.STATEYARD_TARGETS = {
        "http": {"endpoints": ["https://api.example.com"]},
        "apigateway": {"endpoint_url": "http://127.0.0.1:9000"},
    }
    assert web._is_allowed(service, url) is allowed


def test_nothing_is_called_without_a_target(settings: Any) -> None:
    """The default is to call nobody."""
    settings.STATEYARD_TARGETS = {}
    for service in ("http", "apigateway"):
        assert not web._is_allowed(service, "https://abc.execute-api.eu-west-1.amazonaws.com/dev")
