"""JSONata follows the rules that the library alone breaks.

Values and errors are those of jsonata 2.0.6, limits those that were measured on the service.
"""

from __future__ import annotations

import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonata.jexception import JException

from engine.data import jsonata_eval
from engine.data.jsonata_pool import POOL
from engine.data.jsonata_text import error_text

ROOT = Path(__file__).parents[3]
DATA: dict[str, Any] = {
    "list": [3, 1, 2],
    "items": [{"k": "x", "n": 2}, {"k": "y", "n": 1}, {"k": "x", "n": 5}],
    "nulls": [None, 1, None],
    "nested": [[1, 2], [3, [4, 5]]],
    "big": 5890840712243076,
    "long": 9007199254740993,
    "beyond": 2**63,
}
_ONE_MATCH = "{'match': '1', 'start': 1, 'end': 2, 'groups': [], 'next': function() { $no }}"
VALUES: list[tuple[str, Any]] = [
    # numbers as texts
    ("$string($d.big)", "5890840712243076"),
    ("$string($d.long)", "9007199254740993"),
    ("$string($d.beyond)", "9223372036854776000"),
    ("$string(1e15)", "1000000000000000"),
    ("$string(1e20)", "100000000000000000000"),
    ("$string(-1e20)", "-100000000000000000000"),
    ("$string(1e21)", "1e+21"),
    ("$string(999999999999999868928)", "999999999999999900000"),
    ("$string(1e-7)", "1e-7"),
    ("$string(0.000001)", "0.000001"),
    ("$string(1/3)", "0.333333333333333"),
    ("$string(0.1 + 0.2)", "0.3"),
    ("1e21 & ''", "1e+21"),
    ("-0 & ''", "0"),
    ("$string({'x': 'ë', 'f': $sum, 'n': null})", '{"x":"ë","f":"","n":null}'),
    ("$string({'a': [1, {}]}, true)", '{\n  "a": [\n    1,\n    {}\n  ]\n}'),
    ("$string($sum)", ""),
    # numbers
    ("5.5 % 2", 1.5),
    ("-5 % 3", -2),
    ("1 / 0", "Infinity"),
    ("-1 / 0", "-Infinity"),
    ("0 / 0", "NaN"),
    ("1e308 * 10", "Infinity"),
    ("{'k': [1 / 0]}", {"k": ["Infinity"]}),
    ("$parseInteger('abc', '0')", "NaN"),
    ("1e20", 10**20),
    ("$d.beyond", 9223372036854776000),
    ("$number('0b11') + $number('0o17') + $number('0x1F')", 49),
    ("$number('007')", 7),
    ("$round(125, -1)", 120),
    ("$random(42)", 0.7275636800328681),
    ("$formatNumber(0.123, '#.e9')", "0.1e0"),
    ("$formatNumber(1234.5678, '00.000e0')", "12.346e2"),
    ("$formatNumber(-34.555, '#0.00;(#0.00)')", "(34.56)"),
    ("$formatNumber(0.4857, '###.###‰')", "485.7‰"),
    ("$formatNumber(1e20, '#,######')", "100,000000,000000,000000"),
    ("$formatNumber(123456789, '9,999,99')", "1234,567,89"),
    ("$formatInteger(1e46, 'w')", "ten billion trillion trillion trillion"),
    ("$formatInteger(1000000000000001, 'w')", "one thousand trillion and one"),
    # equality keeps types apart
    ("1 in [true]", False),
    ("$distinct([1, true, '1', 1.0])", [1, True, "1"]),
    # null is a value
    ("$count($d.nulls)", 3),
    ("$d.nulls[0]", None),
    ("$filter($d.nulls, function($v) { $v = null })", [None, None]),
    ("$count([null])", 1),
    # arrays and order
    ("$sort($d.items, function($l, $r) { $l.k > $r.k }).n", [2, 5, 1]),
    ("$sort($d.items, function($l, $r) { $l.k < $r.k }).n", [1, 2, 5]),
    ("$d.items[0].k[]", ["x"]),
    ("$d.items[-1] ?: 7", {"k": "x", "n": 5}),
    ("$d.list[-9] ?: 7", 7),
    ("$d.list[-1.5]", 1),
    ("$d.items^(>n).k", ["x", "x", "y"]),
    ("$map($d.list, $sum)", [3, 1, 2]),
    # texts in characters, not in halves of them
    ("$length('\\uD834\\uDD1E')", 1),
    ("$substring('a😀b', 1, 1)", "😀"),
    ("$split('a,b,c', ',', 2.5)", ["a", "b"]),
    ("$decodeUrl('a%3Fb%20c')", "a%3Fb c"),
    ("$decodeUrlComponent('a%3Fb')", "a?b"),
    ("$encodeUrlComponent('?é')", "%3F%C3%A9"),
    # patterns and functions that match
    ("$replace('hello', /(l)/, '$12')", "hel2l2o"),
    ("$replace('hello', 'l', '$0')", "he$0$0o"),
    ("$replace('hello', /(z)?l/, '<$1>')", "he<><>o"),
    ("$replace('68F', /(\\d+)F\\b/, function($m) { $m.groups[0] & 'C' })", "68C"),
    ("$replace('abc', 'b', function($m) { $uppercase($m.match) })", "aBc"),
    ("/b(.)/('abcbd').groups", ["c"]),
    ("/b(.)/('abcbd').next().match", "bd"),
    (f"$match('a1', function($s) {{ {_ONE_MATCH} }}).index", 1),
    ("$type(/a/)", "function"),
    # dates
    ("$toMillis('2020-01-01T00:00:00+0100')", 1577833200000),
    ("$toMillis('2020')", 1577836800000),
    # comments and chains
    ("/* a */ /* b */ 1", 1),
    ("($f := function($x) { $x + 1 } ~> function($x) { $x * 2 }; $f(3))", 8),
    # functions of the service
    ("$range(-1.7, 2, 1)", [-1, 0, 1, 2]),
    ("$count($range(1, 360145, 1))", 360145),
    ("$partition([1, 2, 3], 2.9)", [[1, 2], [3]]),
    ("$parse('[null, 9007199254740993, 9223372036854775808]')",
     [None, 9007199254740993, 9223372036854776000]),
]  # fmt: skip


def evaluate(text: str) -> tuple[str, Any]:
    """Evaluate in the child process."""
    return POOL.evaluate(text, {"d": DATA}, 0)


@pytest.mark.parametrize(("text", "value"), VALUES, ids=[text for text, _ in VALUES])
def test_values(text: str, value: Any) -> None:
    """The value, with its type: 1 is not true."""
    result = evaluate(text)
    assert result == (jsonata_eval.VALUE, value)
    assert type(result[1]) is type(value) or isinstance(value, float)


@pytest.mark.parametrize(
    "text",
    [
        "$range(1, 9)",
        "$range(1, 9, -1)",
        "$partition([1], 0)",
        "$partition([], 2)",
        "$hash('a')",
        "$parse($nothing)",
        "$d.list[9]",
    ],
)
def test_nothing(text: str) -> None:
    """Arguments that yield nothing rather than an error."""
    assert evaluate(text) == (jsonata_eval.UNDEFINED, None)


_DEPTH = (
    "Stack overflow error: Check for non-terminating recursive function. Consider rewriting as "
    "tail-recursive. Depth=101 max=100"
)
_MEMORY = "Expression evaluation memory limit exceeded: Check for excessive memory usage"
_SUM = "($f := function($n) { $n = 0 ? 0 : 1 + $f($n - 1) }; $f(%d))"
_DOUBLED = "($p := function($s, $n) { $n = 0 ? $s : $p($s & $s, $n - 1) }; $length($p('x', %d)))"


@pytest.mark.parametrize(
    ("most", "more", "error"),
    [
        ("[1..873782] ~> $count()", "[1..873783] ~> $count()", _MEMORY),
        ("$sum([1..1000])", "$sum([1..900000])", _MEMORY),
        ("$count($range(1, 360145, 1))", "$range(1, 360146, 1)", _MEMORY),
        (_DOUBLED % 22, _DOUBLED % 23, _MEMORY),
        ("+".join(["1"] * 100), "+".join(["1"] * 101), _DEPTH),
        ("(" * 99 + "1" + ")" * 99, "(" * 100 + "1" + ")" * 100, _DEPTH),
        ("[" * 99 + "1" + "]" * 99, "[" * 100 + "1" + "]" * 100, _DEPTH),
        ("'a'" + "~>$string" * 99, "'a'" + "~>$string" * 100, _DEPTH),
        (_SUM % 31, _SUM % 32, _DEPTH),
    ],
    ids=["range", "sum", "$range", "text", "operators", "blocks", "arrays", "chain", "recursion"],
)
def test_limits_are_those_measured_on_the_service(most: str, more: str, error: str) -> None:
    """What the service takes is taken, and one step more is refused in its words."""
    assert evaluate(most)[0] == jsonata_eval.VALUE
    assert evaluate(more) == (jsonata_eval.ERROR, error)


def test_a_loop_ends_with_the_limit_of_time() -> None:
    """A tail call does not grow the stack, so that only the clock ends it."""
    loop = "($f := function($x) { $f($x + 1) }; $f(1))"
    message = "Expression evaluation timeout: Check for infinite loop"
    assert evaluate(loop) == (jsonata_eval.ERROR, message)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("$sum('a')", 'T0412: Argument 1 of function "sum" must be an array of "numbers"'),
        ("$abs('a')", 'T0410: Argument 1 of function "abs" does not match function signature'),
        ("$count(1, 2)", 'T0410: Argument 2 of function "count" does not match function signature'),
        ("$split('a', 'b', null)", 'T0410: Argument 3 of function "split" does not match'),
        ("[1].$uppercase()", "T0411: Context value is not a compatible type with argument 1 of"),
        ("1 + 'a'", 'T2002: The right side of the "+" operator must evaluate to a number'),
        ("(1 / 0) + 1", "D1001: Number out of range: null"),
        ("-'a'", 'D1002: Cannot negate a non-numeric value: "a"'),
        ("1 < 'a'", 'T2009: The values 1 and "a" either side of operator "<" must be of the same'),
        ("2(1)", "T1006: Attempted to invoke a non-function"),
        ("$d.(substring(?, 1))", "T1007: Attempted to partially apply a non-function. Did you "),
        ("$d.(sum(list))", "T1005: Attempted to invoke a non-function. Did you mean $sum?"),
        ("$number('1/2')", 'D3030: Unable to cast value to a number: "1/2"'),
        ("$number('10e500')", 'D3030: Unable to cast value to a number: "10e500"'),
        ("$power(-8, 1/3)", "D3061: The power function has resulted in a value that cannot be"),
        ("$string(1/0)", "D3001: Attempting to invoke string function on Infinity or NaN"),
        ("$string({'x': 1/0})", "D1001: Number out of range: null"),
        ("$sort($d.items)", "D3070: The single argument form of the sort function can only be"),
        ("$replace('a', '', 'b')", "D3010: Second argument of replace function cannot be an empty"),
        ("$replace('a', 'a', 'b', -1)", "D3011: Fourth argument of replace function must evaluate"),
        ("$replace('a', /a/, function($m) { 1 })", "D3012: Attempted to replace a matched string"),
        ("$replace('a', /x*/, 'b')", "D1004: Regular expression matches zero length string"),
        ("$split('a', $uppercase)", 'T1010: The matcher function argument passed to function "spl'),
        ("$decodeUrl('%E0%A4%A')", 'D3140: Malformed URL passed to $decodeUrl(): "%E0%A4%A"'),
        ("$toMillis('foo')", "D3110: The argument of the toMillis function must be an ISO 8601"),
        ("$toMillis('2018-02-03 11:15:33')", "D3110: The argument of the toMillis function must"),
        ("$toMillis('x', '[q]')", 'D3132: Unknown component specifier "q" in date/time picture'),
        ("$fromMillis(0, '[YN]')", "D3133: The 'name' modifier can only be applied to months"),
        ("$fromMillis(0, '[Z010101t]')", "D3134: The timezone integer format specifier cannot"),
        ("$fromMillis(0, '[Y')", "D3135: No matching closing bracket ']' in date/time picture"),
        ("$toMillis('2018-22', '[Y]-[D]')", "D3136: The date/time picture string is missing"),
        ("$formatInteger(1, '\u03b1')", "D3130: Formatting or parsing an integer as a sequence"),
        ("$formatInteger(12340, '##0\uff10')", "D3131: In a decimal digit pattern, all digits"),
        ("$formatBase(1, 37)", "D3100: The radix of the formatBase function must be between 2 and"),
        ("$error('mine')", "D3137: mine"),
        ("$assert(false, 'mine')", "D3141: mine"),
        ("[1..10000001]", "D2014: The size of the sequence allocated by the range operator (..)"),
        ("$hash('a', 'md5')", "$hash: got 'md5', wanted one of MD5"),
        ("$parse('{')", "$parse: the text is no valid JSON"),
        ("$partition([1], -1)", "$partition: got size -1"),
    ],
)  # fmt: skip
def test_errors(text: str, error: str) -> None:
    """JSONata's code and sentence, and never one of Python."""
    kind, message = evaluate(text)
    assert kind == jsonata_eval.ERROR
    assert str(message).startswith(error)


@pytest.mark.parametrize(
    ("picture", "code"),
    [
        ("0;0;0", "D3080"),
        ("0.0.0", "D3081"),
        ("0%%", "D3082"),
        ("0‰‰", "D3083"),
        ("0%‰", "D3084"),
        (".e0", "D3085"),
        ("0x0", "D3086"),
        ("x", "D3086"),
        ("0,.0", "D3087"),
        ("0,", "D3088"),
        ("0,,0", "D3089"),
        ("0#", "D3090"),
        ("0.#0", "D3091"),
        ("0e0%", "D3092"),
        ("#0.0e0,0", "D3093"),
        ("0e", "D3093"),
    ],
)
def test_pictures_that_break_a_rule(picture: str, code: str) -> None:
    """The fourteen rules of a picture, each with its code."""
    kind, message = evaluate(f"$formatNumber(20, '{picture}')")
    assert (kind, str(message)[:5]) == (jsonata_eval.ERROR, code)


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("a[1,2)", "S0202", 'Expected "]", got ","'),
        ('"unterminated', "S0101", "String literal must be terminated by a matching quote"),
        ("1 +", "S0207", "Unexpected end of expression"),
        ('{"a":}', "S0211", 'The symbol "}" cannot be used as a unary operator'),
        ("$x :=", "S0207", "Unexpected end of expression"),
        ('$match("a", /abc', "S0302", "No terminating / in regular expression"),
        ("1 /* never ends", "S0106", "Comment has no closing tag"),
        ("[1!2]", "S0204", 'Unknown operator: "!"'),
        ("1e1000", "S0102", 'Number out of range: "1e1000"'),
        ("function($x)<n<n>>{$x}", "S0401", "Type parameters can only be applied to functions and"),
        ("function($x)<(sa<n>)>{$x}", "S0402", "Choice groups containing parameterized types are"),
        ("%", "S0217", "The object representing the 'parent' cannot be derived from this"),
        ("a.5", "S0213", "The literal value 5 cannot be used as a step within a path expression"),
        ("'\\q'", "S0103", 'Unsupported escape sequence: \\"q"'),
        ("'abc\\", "S0101", "String literal must be terminated by a matching quote"),
    ],
)
def test_syntax_errors(text: str, code: str, message: str) -> None:
    """JSONata's code and sentence, whatever the library lets through."""
    with pytest.raises(JException) as caught:
        jsonata_eval.compiled(text)
    assert caught.value.error == code
    assert error_text(caught.value).startswith(message)


def test_what_a_library_prints_is_no_answer() -> None:
    """The library prints when it calls what is no function; the next answer is its own."""
    for _ in range(3):
        assert evaluate("2(1)")[0] == jsonata_eval.ERROR
        assert evaluate("1 + 1") == (jsonata_eval.VALUE, 2)


def test_where_no_pipe_can_be_polled_threads_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows has no poll: answers come all the same, and what does not end is killed in time."""
    monkeypatch.delattr(select, "poll")
    assert POOL.evaluate("$sum([1..3])", {}, 0) == ("value", 6)
    endless = "($f := function($n) { $f($n + 1) }; $f(0))"
    assert POOL.evaluate(endless, {}, 0)[0] == "error"
    assert POOL.evaluate("2", {}, 0) == ("value", 2)


_EVALUATE = """
from engine.data.jsonata_pool import POOL
print(POOL.evaluate("1 + 1", {}, 0))
POOL.end()
print(POOL.evaluate("2 + 2", {}, 0))
"""


def test_a_process_that_ends_leaves_no_child_open() -> None:
    """Python warns of a child that nobody waited for; a pool that was ended starts another."""
    done = subprocess.run(
        [sys.executable, "-W", "default::ResourceWarning", "-c", _EVALUATE],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "('value', 2)\n('value', 4)\n"
    assert done.stderr == ""
