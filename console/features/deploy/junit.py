"""Write JUnit's XML, which every CI shows as tests."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class JUnitCase:
    """A test case. ``outcome``: "failure", "skipped", or "system-out" of a passed one; "": passed.

    ``message``, ``text``: describe the outcome. ``seconds``: the duration, None if not known.
    """

    name: str
    outcome: str = ""
    message: str = ""
    text: str = ""
    seconds: float | None = None


def write_junit(suites: Iterable[tuple[str, Sequence[JUnitCase]]]) -> str:
    """Return the XML of test suites: the name of each, and its cases."""
    root = ET.Element("testsuites")
    for name, cases in suites:
        suite = _add_element(root, "testsuite", {"name": name, "tests": str(len(cases))})
        for outcome, count in (("failure", "failures"), ("skipped", "skipped")):
            suite.set(count, str(sum(case.outcome == outcome for case in cases)))
        for case in cases:
            fields = {"classname": name, "name": case.name}
            if case.seconds is not None:
                fields["time"] = f"{case.seconds:.3f}"
            element = _add_element(suite, "testcase", fields)
            if case.outcome:
                message = {"message": case.message} if case.message else {}
                _add_element(element, case.outcome, message).text = clean_text(case.text) or None
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode")


def clean_text(text: str) -> str:
    """Return a text without the characters that XML forbids; names of states may have them."""
    return _CONTROL.sub("?", text)


def _add_element(parent: ET.Element, name: str, fields: Mapping[str, str]) -> ET.Element:
    return ET.SubElement(parent, name, {key: clean_text(text) for key, text in fields.items()})
