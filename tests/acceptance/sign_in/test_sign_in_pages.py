"""The pages of the sign-in, as people see them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import sync_playwright

from tests.acceptance.browser.accessibility import axe_faults
from tests.acceptance.browser.conftest import ARGS, Watch
from tests.acceptance.sign_in.test_sign_in import person
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

    from tests.acceptance.sign_in.conftest import SignInYard

pytestmark = [pytest.mark.acceptance, pytest.mark.browser, pytest.mark.sqlite_only]


def check(page: Page, picture: Path) -> None:
    """No rule of accessibility is broken, and nothing needs scrolling sideways."""
    assert axe_faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.screenshot(path=picture)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("javascript", [True, False])
def test_a_person_signs_in_by_a_button(
    yard: SignInYard, chromium: str, tmp_path: Path, scheme: str, javascript: bool
) -> None:
    """On a phone, light and dark, with and without JavaScript; a refusal has a page, too."""
    yard.corp.control(z1=person("zoe", "leads"), z2=person("zed"))
    with ThreadPoolExecutor(1) as pool:  # the loop of another test's browser may run in this one
        pool.submit(
            _sign_in_twice, yard, chromium, tmp_path, scheme, javascript=javascript
        ).result()


def _sign_in_twice(
    yard: SignInYard, chromium: str, tmp_path: Path, scheme: str, *, javascript: bool
) -> None:
    """Zoe, of the group, gets in; Zed is refused."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGS)
        for who, expected in (("z1", "/machines/"), ("z2", "/sign-in/corp/callback/")):
            context = browser.new_context(
                base_url=yard.server.url,
                viewport={"width": 390, "height": 844},
                color_scheme="dark" if scheme == "dark" else "light",
                java_script_enabled=javascript,
            )
            context.set_default_timeout(1000 * PATIENCE_S)
            for host in ("localhost", "127.0.0.1"):
                context.add_cookies([{"name": "who", "value": who, "domain": host, "path": "/"}])
            page = context.new_page()
            watch = Watch(page)
            page.goto("/machines/")
            if javascript:
                check(page, tmp_path / "sign-in.png")
            page.get_by_role("link", name="Sign in with Corp SSO").click()
            page.get_by_role("heading", level=1).first.wait_for()
            assert expected in page.url
            if javascript and who == "z2":
                check(page, tmp_path / "refused.png")
            assert [fault for fault in watch.faults if not fault.startswith("403")] == []
            context.close()
        browser.close()
