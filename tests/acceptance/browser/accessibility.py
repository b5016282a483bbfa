"""What axe finds on an open page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from axe_playwright_python.sync_playwright import Axe

if TYPE_CHECKING:
    from playwright.sync_api import Page

TARGET_SIZE = "target-size"
"""Rule of WCAG 2.5.8 that axe runs on request only: 24 by 24 pixels, or that much room around."""
_SCRIPT = Axe().axe_script


def axe_faults(page: Page, **options: Any) -> list[str]:
    """Return the rules that a page breaks, with the elements.

    axe reports neither the rules that the page keeps nor the files that it loads: describing every
    element of a page takes longer than checking it.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(_SCRIPT)
    result = page.evaluate(
        "options => axe.run(options)",
        {"preload": False, "resultTypes": ["violations", "incomplete"], **options},
    )
    rules = result["violations"]
    rules += [rule for rule in result["incomplete"] if rule["id"] == TARGET_SIZE]
    return [f"  {rule['id']}: {node['html'][:120]}" for rule in rules for node in rule["nodes"][:5]]


def only(rule: str) -> dict[str, Any]:
    """Return axe's option to run one rule."""
    return {"type": "rule", "values": [rule]}


def faults_at_all_sizes(page: Page, path: str, **on_phone: Any) -> list[str]:
    """Open a page on a phone and on a desk, and return its faults in both themes.

    ``on_phone``: axe's options there. Only tables and graphs may scroll sideways, inside their own
    regions. The themes differ by colours alone, and an open page follows the system.
    """
    page.set_viewport_size({"width": 390, "height": 800})
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.goto(path)
    page.wait_for_timeout(150)
    lines = axe_faults(page, **on_phone)
    for width in (390, 320, 800, 1440):
        page.set_viewport_size({"width": width, "height": 1000})
        if page.evaluate("document.documentElement.scrollWidth") > width:
            lines.append(f"  it scrolls sideways at {width}")
    page.reload()  # scripts measure the window when a page is loaded
    page.wait_for_timeout(150)
    lines += axe_faults(page, rules={TARGET_SIZE: {"enabled": True}})
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    page.wait_for_timeout(150)
    return lines + axe_faults(page, runOnly=only("color-contrast"))
