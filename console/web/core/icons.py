"""Render Lucide icons as SVG.

The package would open its archive of 1,745 icons for each icon: the first page of a fresh server
took 0.3 s for that. Here the archive is opened once per process.
"""

from __future__ import annotations

from functools import cache, lru_cache
from importlib.resources import files
from io import BytesIO
from xml.etree import ElementTree as ET
from zipfile import ZipFile

_NAMESPACE = "{http://www.w3.org/2000/svg}"
_MOST = 512
"""Icons that are kept drawn, each in the sizes in use; the console has about 150."""


@lru_cache(maxsize=_MOST)
def icon_svg(name: str, size: int) -> str:
    """Return an icon as an ``<svg>`` that screen readers skip.

    ``size``: pixels. Raise ``KeyError`` if the package has no icon of this name.
    """
    root = ET.fromstring(_archive().read(f"{name}.svg"))  # noqa: S314 - the package's own
    for element in root.iter():
        element.tag = str(element.tag).removeprefix(_NAMESPACE)
    root.set("width", str(size))
    root.set("height", str(size))
    root.set("aria-hidden", "true")
    return ET.tostring(root, encoding="unicode")


@cache
def _archive() -> ZipFile:
    return ZipFile(BytesIO(files("lucide").joinpath("lucide.zip").read_bytes()))
