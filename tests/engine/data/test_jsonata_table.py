"""The engine's evaluator yields what the JSONata library yields.

A null of the input is the one difference: the library alone takes it for nothing.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonata.jexception import JException
from jsonata.jsonata import Jsonata

from engine.data import jsonata_eval
from engine.data.jsonata_pool import POOL, evaluate_here

ORDER = {
    "id": "o-17",
    "customer": {"name": "Zoë", "tags": ["new", "eu"], "age": 41.5, "none": None},
    "lines": [
        {"sku": "b", "price": 2.5, "count": 4, "in": {"bin": 7}},
        {"sku": "a", "price": 10, "count": 1},
        {"sku": "c", "price": 0.75, "count": 12, "in": {"bin": 9}},
    ],
    "matrix": [[1, 2], [3, [4]]],
    "empty": [],
    "text": "The quick brown fox",
}
TABLE = """
$o.id
$o.nothing
$o.customer.name
$o.lines.sku
$o.lines[0]
$o.lines[-1].sku
$o.lines[price > 1].sku
$o.lines[sku = 'a'].count
$o.lines[sku in ['a', 'c']].price
$o.lines[[0..1]].sku
$o.lines.(price * count)
$o.lines.in.bin
$o.lines{sku: price}
$o.lines{'all': $sum(price)}
$o.lines^(price).sku
$o.lines^(>price).sku
$o.lines^(count, >sku).sku
$o.lines#$i.{'i': $i, 's': sku}
$o.lines@$l.{'s': $l.sku}
$o.matrix[0][1]
$o.matrix.$
$o.matrix.*
$o.*.name
$o.**.bin
$o.empty
$o.customer.tags[]
$o.lines[0].sku[]
$o.id & '!' & 7
$replace('265USD', /([0-9]+)USD/, '$0$1$2')
$replace('abcdefghijkl', /(ijk)/, '$8$12$1')
1 + 2 * 3 - 4 / 8
-(7)
1 = 1.0
'a' < 'b' and 2 >= 2 or false
$o.id != 'x'
$o.id ? 'y' : 'n'
$o.nothing ? 'y' : 'n'
'tag' in $o.customer.tags
[1, [2, 3], $o.nothing]
{'a': 1, 'b': $o.nothing}
[1..5]
[-2..0, 7]
($x := 3; $y := $x * 2; $x + $y)
(function($a, $b) { $a - $b })(5, 3)
($f := function($n) { $n <= 1 ? 1 : $n * $f($n - 1) }; $f(10))
($add := function($a, $b) { $a + $b }; $inc := $add(?, 1); $inc(4))
$o.text ~> $uppercase() ~> $substringBefore(' ')
$string(5)
$string([1, {'a': null}])
$string($o.lines[0], true)
$length('Zoë')
$substring('hello', 1, 3)
$substring('hello', -3)
$substringBefore('a-b-c', '-')
$substringAfter('a-b-c', '-')
$uppercase('straße')
$lowercase('ÀB')
$trim('  a   b ')
$pad('x', 5, '-')
$pad('x', -5)
$contains('abracadabra', 'bra')
$contains('abracadabra', /b.a/)
$split('a,b,,c', ',')
$split('a1b2c', /[0-9]/)
$split('a b c', ' ', 2)
$join(['a', 'b'], '-')
$match('ababbabbcc', /a(b+)/)
$replace('John Smith', /(\\w+)\\s(\\w+)/, '$2, $1')
$replace('aaa', 'a', 'b', 2)
$base64encode('myuser:mypass')
$base64decode('bXl1c2VyOm15cGFzcw==')
$encodeUrlComponent('?x=test')
$decodeUrlComponent('%3Fx%3Dtest')
$number('12.5')
$number('0x10')
$number(true)
$abs(-5)
$floor(-5.3)
$ceil(5.3)
$round(123.456, 2)
$round(2.5)
$round(-3.5)
$power(2, 8)
$sqrt(16)
$formatNumber(12345.6, '#,###.00')
$formatBase(100, 2)
$formatInteger(2789, 'w')
$formatInteger(1999, 'I')
$parseInteger('twelve thousand', 'w')
$sum($o.lines.count)
$max($o.lines.price)
$min([])
$average([1, 2, 6])
$boolean('')
$boolean([0])
$not($o.nothing)
$exists($o.customer.none)
$count($o.lines)
$count($o.nothing)
$append([1], 2)
$sort([3, 1, 2])
$sort($o.lines, function($l, $r) { $l.price > $r.price }).sku
$reverse([1, 2])
$distinct([1, 2, 1, {'a': 1}, {'a': 1}])
$zip([1, 2], ['a', 'b', 'c'])
$keys($o.customer)
$lookup($o.lines, 'sku')
$spread({'a': 1, 'b': 2})
$merge([{'a': 1}, {'b': 2, 'a': 3}])
$sift($o.customer, function($v, $k) { $k ~> /^n/ })
$each({'a': 1}, function($v, $k) { $k & $v })
$type($o.lines)
$type(null)
$map([1, 2], function($v, $i) { $v + $i })
$filter([1..6], function($v) { $v % 2 = 0 })
$single([1, 2, 3], function($v) { $v = 2 })
$reduce([1..4], function($a, $b) { $a * $b })
$reduce(['a', 'b'], function($a, $b) { $a & $b }, 'z')
$fromMillis(1510067557121)
$fromMillis(1510067557121, '[M01]/[D01]/[Y0001] [h#1]:[m01][P]')
$toMillis('2017-11-07T15:12:37.121Z')
$toMillis('2017-11-07', '[Y]-[M]-[D]')
$o ~> |lines|{'total': price * count}, ['in']|
$error('mine')
$assert(false, 'no')
$sum('x')
$o.lines.price & 1
1 + 'a'
$unknown(1)
$o.lines[price > 100]
$single([1, 2])
""".strip().splitlines()


_BOUNDS = {"D1011": "Stack overflow error", "D1012": "Expression evaluation timeout"}


def library(text: str, data: Any, bindings: dict[str, Any]) -> tuple[str, Any]:
    """Return what the library alone yields within our bounds, in our words."""
    try:
        expression = Jsonata(text)
        expression.environment.set_runtime_bounds(1_000, 300)
        value = expression.evaluate(data, bindings)
    except JException as error:
        return jsonata_eval.ERROR, _BOUNDS.get(error.error, error.error)
    except Exception as error:  # noqa: BLE001 - whatever it raises counts as its error
        return jsonata_eval.ERROR, type(error).__name__
    if value is None:
        return jsonata_eval.UNDEFINED, None
    return jsonata_eval.VALUE, json.loads(json.dumps(value))


def same(ours: tuple[str, Any], theirs: tuple[str, Any]) -> bool:
    """Compare results; of errors the code, which stands first in our text."""
    if theirs[0] == jsonata_eval.ERROR:
        return ours[0] == jsonata_eval.ERROR and str(theirs[1]) in str(ours[1])
    return ours == theirs


@pytest.mark.parametrize("text", TABLE)
def test_every_operator_and_function(text: str) -> None:
    """In this process and in the child: the library's value, its nothing, or its error's code."""
    theirs = library(text, None, {"o": ORDER})
    assert same(evaluate_here(text, {"o": ORDER}, 0), theirs)
    assert same(POOL.evaluate(text, {"o": ORDER}, 0), theirs)
