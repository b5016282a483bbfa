"""Files that the AWS CLI printed are imported by one drop, or by the file input alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import FilePayload, expect

from tests.acceptance.browser.accessibility import axe_faults
from tests.acceptance.browser.yard import create, ended, start, unique

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]
DROP = """files => {
    const transfer = new DataTransfer();
    for (const [name, text] of files) transfer.items.add(new File([text], name));
    const target = document.querySelector("h1");
    const init = { dataTransfer: transfer, bubbles: true, cancelable: true };
    target.dispatchEvent(new DragEvent("dragover", init));
    target.dispatchEvent(new DragEvent("drop", init));
}"""


@pytest.fixture
def printed(server: Server) -> dict[str, str]:
    """Return what the AWS CLI prints of an execution, by the name of a file."""
    machine = create(server, {"StartAt": "Say", "States": {"Say": {"Type": "Pass", "End": True}}})
    path = ended(server, start(server, machine, name=unique("printed")))
    client, name = server.client(), path.split("/")[4]
    arn = f"arn:aws:states:us-east-1:123456789012:execution:{machine}:{name}"
    answers: dict[str, Any] = {
        "history.json": client.get_execution_history(executionArn=arn),
        "the machine.json": client.describe_state_machine_for_execution(executionArn=arn),
        f"{name}.json": client.describe_execution(executionArn=arn),
    }
    return {file: json.dumps(answer, default=str) for file, answer in answers.items()}


def test_files_are_dropped_anywhere_on_the_page(page: Page, printed: dict[str, str]) -> None:
    """One after the other; the page names them, and it is not left before Import is pressed."""
    page.goto("/import/")
    for name, text in printed.items():
        page.evaluate(DROP, [[name, text]])
    expect(page.locator("[data-chosen-files] li")).to_have_count(3)
    expect(page.locator("[data-chosen-files]")).to_contain_text("the machine.json, 1 KB")
    assert page.evaluate("document.getElementById('uploads').files.length") == 3
    assert axe_faults(page) == []
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.locator("#status")).to_have_text("Succeeded")
    expect(page.locator("h1")).to_contain_text("printed-")


def test_the_input_fills_its_zone_without_a_script(
    browser: Browser, server: Server, signed_in: Path, printed: dict[str, str]
) -> None:
    """So a browser takes files that are dropped in it by itself."""
    context = browser.new_context(
        base_url=server.url, storage_state=signed_in, java_script_enabled=False
    )
    page = context.new_page()
    page.goto("/import/")
    zone, field = (page.locator(each).bounding_box() for each in (".drop-zone", "#uploads"))
    assert zone is not None
    assert field is not None
    assert all(abs(zone[side] - field[side]) <= 4 for side in ("x", "y", "width", "height"))
    page.set_input_files(
        "#uploads",
        [
            FilePayload(name=name, mimeType="application/json", buffer=text.encode())
            for name, text in printed.items()
        ],
    )
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.locator("#status")).to_have_text("Succeeded")
    context.close()
