"""Measure text widths of the graph in pixels, from metrics of common fonts.

The page uses the reader's own font. For each character the wider one of DejaVu Sans and Liberation
Sans (with the metrics of Arial) is used; the usual fonts of other systems lie between the two, so
boxes are always wide enough. Widths are thousandths of the font size.
"""

from __future__ import annotations

from functools import lru_cache
from unicodedata import combining, east_asian_width

_FIRST = 0x20
_REGULAR_TEXT = """
318 401 460 838 637 951 780 275 391 391 500 838 318 361 318 337 637 637 637 637 637
637 637 637 637 637 337 337 838 838 838 557 1016 685 687 723 771 667 611 778 752 295
500 667 558 863 749 788 667 788 723 667 611 732 685 989 686 667 686 391 337 391 838
557 500 613 635 550 635 616 353 635 634 278 278 580 278 975 634 612 635 635 412 521
393 634 592 818 592 592 525 637 337 637 838
"""
_BOLD_TEXT = """
349 457 521 838 696 1002 873 307 458 458 523 838 380 416 380 366 696 696 696 696 696
696 696 696 696 696 400 400 838 838 838 611 1000 774 763 734 831 684 684 821 837 373
557 775 638 996 837 851 733 851 771 721 683 813 774 1104 771 725 726 458 366 458 838
557 500 675 716 593 716 679 436 716 712 343 343 666 343 1042 712 688 716 716 494 596
479 712 652 924 646 652 583 712 366 712 838
"""
_REGULAR = tuple(map(int, _REGULAR_TEXT.split()))
_BOLD = tuple(map(int, _BOLD_TEXT.split()))
_WIDE, _OTHER = 1250, 900
"""Of a character of East Asia, or a picture; and of any other one that is not ASCII."""


def text_width_px(text: str, size: float, *, bold: bool = False) -> float:
    """Return the maximum width in pixels of a text at a font size."""
    return _thousandths(text, bold=bold) * size / 1000


@lru_cache(maxsize=20_000)
def _thousandths(text: str, *, bold: bool) -> int:
    widths = _BOLD if bold else _REGULAR
    total = 0
    for char in text:
        place = ord(char) - _FIRST
        if 0 <= place < len(widths):
            total += widths[place]
        elif not combining(char):
            total += _WIDE if east_asian_width(char) in "WF" else _OTHER
    return total
