"""Reject names that look like another person's name, such as ``anna`` with a Cyrillic ``a``.

A name has letters of one script only (*single script* and its East Asian exceptions of Unicode
TS 39). The name of a new person must differ from every other name of the project also when letters
that look alike count as equal.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from console.errors import ValidationException

if TYPE_CHECKING:
    from collections.abc import Iterable

_TOGETHER = (
    {"LATIN", "CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "IDEOGRAPHIC"},
    {"LATIN", "CJK", "HANGUL"},
    {"LATIN", "CJK", "BOPOMOFO"},
)
"""Scripts that one name may mix."""
_LETTERS_ALIKE = {
    "a": "\u0430\u03b1",
    "b": "\u044c\u0432",
    "c": "\u0441\u03f2",
    "d": "\u0501",
    "e": "\u0435\u03b5",
    "h": "\u04bb\u043d\u0570",
    "i": "\u0456\u03b9",
    "j": "\u0458\u03f3",
    "k": "\u043a\u03ba",
    "l": "\u04cf",
    "m": "\u043c",
    "o": "\u043e\u03bf\u05850",
    "p": "\u0440\u03c1",
    "q": "\u051b\u0566",
    "s": "\u0455",
    "t": "\u0442\u03c4",
    "u": "\u03c5\u057d",
    "v": "\u03bd\u0475",
    "w": "\u051d\u03c9",
    "x": "\u0445\u03c7",
    "y": "\u0443\u03b3",
}
"""Letter -> a Latin look-alike, for Cyrillic, Greek and Armenian letters, and digits."""
_ALIKE = str.maketrans(
    {lookalike: letter for letter, many in _LETTERS_ALIKE.items() for lookalike in many}
)
_SAME = (("rn", "m"), ("vv", "w"))
_LARGE_L = "\ufffd"
"""Stands for L, which looks like neither I nor l."""
_DRAWN = "as drawn: "
"""Prefix of a shape with case-sensitive letters."""
_SIGNS = " .'\u2019-"
_OF_THE_SERVER = ("link ", "rule ", "schedule ", "execution ")
"""Prefixes of the names of this server's own actors."""


def check_script(name: str, subject: str) -> None:
    """Raise ValidationException for mixed scripts, or letters of unusual width or style."""
    letters = [character for character in name if character.isalpha()]
    scripts = {unicodedata.name(letter, "?").split()[0] for letter in letters}
    plain = unicodedata.normalize("NFKC", name) == unicodedata.normalize("NFC", name)
    if not plain or (len(scripts) > 1 and not any(scripts <= mixed for mixed in _TOGETHER)):
        raise ValidationException(
            f"{subject}: {name!r} mixes letters of several scripts. Use letters of one script"
        )


def skeletons(name: str) -> set[str]:
    """Return the shapes of a name; two names with a common shape look alike.

    A 1 looks like an l and like an i, a large I like an l; an i and an l do not look alike.
    """
    folded = unicodedata.normalize("NFKD", name)
    letters = "".join(letter for letter in folded if not unicodedata.combining(letter))
    shapes = letters.replace("L", _LARGE_L).replace("I", "l").replace("1", "l")
    return {
        _plain(letters.replace("1", "l")),
        _plain(letters.replace("1", "i")),
        f"{_DRAWN}{_plain(shapes)}",
    }


def _plain(letters: str) -> str:
    plain = letters.casefold().translate(_ALIKE)
    for pair, letter in _SAME:
        plain = plain.replace(pair, letter)
    return plain


def check_new_name(name: str, others: Iterable[str]) -> None:
    """Raise ValidationException if a new person's name looks like another one."""
    alike = skeletons(name)
    for other in others:
        if other != name and not alike.isdisjoint(skeletons(other)):
            raise ValidationException(f"name: {name!r} looks like {other!r}, who is here already")


def check_free_name(name: str, longest: int) -> None:
    """Raise ValidationException for a name that a link's user must not choose.

    Signs such as a comma could imitate the part of the name that identifies the link.
    """
    good = all(sign.isalnum() or unicodedata.combining(sign) or sign in _SIGNS for sign in name)
    if len(name) > longest or not good or not any(map(str.isalpha, name)):
        raise ValidationException(
            f"Your name must have 1 to {longest} letters, digits, blanks and . ' -"
        )
    check_script(name, "Your name")
    if any(
        words.startswith(_OF_THE_SERVER) or "by a link" in words
        for words in (f"{shape.removeprefix(_DRAWN)} " for shape in skeletons(name))
    ):
        raise ValidationException(f"Your name: {name!r} is not the name of a person")
