"""Graphviz works in processes of its own that are limited, killed, replaced and gone in the end."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from console.web.graph import dot, layout_pool
from console.web.graph.diagram import Arrow, Diagram, Rectangle
from console.web.graph.layout_pool import LayoutChild, LayoutFailure, LayoutPool, NotLaidOut
from tests.acceptance.server import ROOT
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator


LONG = 60.0  # seconds: a deadline that no layout here meets
SIMPLE = 'digraph{a->b[id="e0"]}'


def hopeless() -> str:
    """Return the DOT text of a graph that takes Graphviz minutes."""
    numbers = range(40)
    parts: list[Rectangle | Arrow] = [Rectangle(f"n{number}", 184, 56) for number in numbers]
    parts += [
        Arrow(f"e{source}-{other}", f"n{source}", f"n{other}", 90)
        for source in numbers
        for other in numbers
    ]
    return dot.dot_source(Diagram(tuple(parts)))


def runs(pid: int) -> bool:
    """Return whether a process is there, other than as a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture(params=["poll", "threads"])
def child(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[LayoutChild]:
    """A child that works, waited for by poll or, as on Windows, by threads."""
    if request.param == "threads":
        monkeypatch.delattr(select, "poll")
    process = LayoutChild()
    process.begin()
    yield process
    process.end()


def ask(child: LayoutChild, text: str = SIMPLE, seconds: float = 5.0, limit_s: float = LONG) -> Any:
    """Ask a child, with time to spare."""
    return child.ask(text, seconds, time.monotonic() + limit_s)


def test_a_child_answers_one_request_after_the_other(child: LayoutChild) -> None:
    """It stays the same process, and says how much processor time each took."""
    pid = child.pid
    for _ in range(3):
        answer = ask(child)
        assert set(answer["drawn"]["nodes"]) == {"a", "b"}
        assert answer["seconds"] < 1
    child.begin()
    assert child.pid == pid


def test_a_child_ends_by_its_processor_time_and_is_replaced(child: LayoutChild) -> None:
    """The graph is too large however idle the processor is; the next caller does not notice."""
    pid = child.pid
    with pytest.raises(NotLaidOut) as error:
        ask(child, hopeless(), seconds=0.3)
    assert error.value.reason is LayoutFailure.TIME
    assert not runs(pid)
    child.begin()
    assert ask(child)["drawn"]["nodes"]


def test_a_child_that_does_not_come_on_is_killed(child: LayoutChild) -> None:
    """Beside a busy processor the time runs out first: nobody waits longer for the child."""
    pid = child.pid
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(NotLaidOut) as error:
        ask(child, limit_s=0.2)
    assert error.value.reason is LayoutFailure.SLOW
    assert not runs(pid)


def test_a_child_that_reads_nothing_does_not_hold_its_caller(child: LayoutChild) -> None:
    """A request larger than the pipe is given up in time, too."""
    os.kill(child.pid, signal.SIGSTOP)
    with pytest.raises(NotLaidOut) as error:
        ask(child, "digraph{" + "a;" * 500_000 + "}", limit_s=0.2)
    assert error.value.reason is LayoutFailure.SLOW


def test_a_child_has_little_memory() -> None:
    """What does not fit ends the child, not the server."""
    child = LayoutChild(["--memory", str(200 * 1024 * 1024)])
    child.begin()
    pid = child.pid
    rows = "".join(f"n{source}->n{other};" for source in range(300) for other in range(300))
    with pytest.raises(NotLaidOut) as error:
        ask(child, f"digraph{{{rows}}}", seconds=LONG)
    assert error.value.reason is LayoutFailure.CRASH
    assert not runs(pid)


def test_a_crash_in_the_middle_of_a_layout_is_survived(child: LayoutChild) -> None:
    """A fault of Graphviz ends one layout; the next one has a new child."""
    pid = child.pid
    killer = threading.Timer(0.3, os.kill, (pid, signal.SIGSEGV))
    killer.start()
    with pytest.raises(NotLaidOut) as error:
        ask(child, hopeless(), seconds=LONG)
    killer.join()
    assert error.value.reason is LayoutFailure.CRASH
    child.begin()
    assert child.pid != pid
    assert ask(child)["drawn"]["nodes"]


def test_text_that_is_no_graph_is_no_answer(child: LayoutChild) -> None:
    """An error of Graphviz is told like a crash."""
    with pytest.raises(NotLaidOut) as error:
        ask(child, "digraph{")
    assert error.value.reason is LayoutFailure.CRASH


def test_two_callers_at_once_have_a_child_each() -> None:
    """Neither gets the other's answer."""
    pool = LayoutPool([LayoutChild(), LayoutChild()])
    answers: dict[int, Any] = {}
    both = threading.Barrier(2)

    def call(number: int) -> None:
        with pool.session() as session:
            both.wait(30)
            for _ in range(5):
                answers[number] = session.lay_out(f'digraph{{n{number}->m[id="e"]}}')

    threads = [threading.Thread(target=call, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    pool.end()
    assert {number: set(answer["nodes"]) for number, answer in answers.items()} == {
        0: {"n0", "m"},
        1: {"n1", "m"},
    }


def test_who_would_wait_too_long_is_told_so() -> None:
    """While all children are at work, others wait for half a second, and not more than eight."""
    pool = LayoutPool([LayoutChild()])
    reasons: list[LayoutFailure] = []
    times: list[float] = []

    def call() -> None:
        begun = time.monotonic()
        try:
            with pool.session():
                pass
        except NotLaidOut as error:
            reasons.append(error.reason)
            times.append(time.monotonic() - begun)

    with pool.session():
        threads = [threading.Thread(target=call) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert pool.lent == 1
    pool.end()
    assert reasons == [LayoutFailure.QUEUE] * 12
    assert sum(seconds >= layout_pool.WAIT_S for seconds in times) <= layout_pool.MOST_WAITING
    assert pool.lent == 0


def test_the_limits_are_those_of_a_whole_picture() -> None:
    """A thousand groups, each below the limit, do not get a thousand times the limit."""
    pool = LayoutPool([LayoutChild()])

    def draw() -> None:
        with pool.session() as session:
            for _ in range(100_000):
                session.lay_out(dot.dot_source(_rows(120)))

    with pytest.raises(NotLaidOut) as error:
        draw()
    assert error.value.reason in (LayoutFailure.TIME, LayoutFailure.SLOW)
    pool.end()


def _rows(count: int) -> Diagram:
    boxes = [Rectangle(f"n{number}", 184, 56) for number in range(count)]
    arrows = [Arrow(f"e{number}", f"n{number}", f"n{number + 1}") for number in range(count - 1)]
    return Diagram((*boxes, *arrows))


_PARENT = """
import sys, time
from console.web.graph.layout_pool import LayoutChild
child = LayoutChild()
child.begin()
print(child.pid, flush=True)
child.ask(sys.stdin.read(), 2.0, time.monotonic() + 600)
print("drawn", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("busy", [False, True])
def test_no_child_is_left_when_its_parent_is_killed(busy: bool) -> None:
    """It ends when its pipe is closed; one at work ends by its limit of processor time."""
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdin
    assert parent.stdout
    pid = int(parent.stdout.readline())
    with parent.stdin as pipe:
        pipe.write(hopeless() if busy else SIMPLE)
    if not busy:
        assert parent.stdout.readline() == "drawn\n"
    assert runs(pid)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    wait_until(lambda: not runs(pid))


_ALONE = """
import os
from console.functions.cpu_affinity import stay_on_one
from console.web.graph.layout_pool import LayoutChild
stay_on_one()
child = LayoutChild()
child.begin()
print(len(os.sched_getaffinity(0)), sorted(os.sched_getaffinity(child.pid)))
"""


def test_a_child_leaves_the_one_processor_of_its_server() -> None:
    """``up`` keeps to one; a layout that ran there would slow everybody down."""
    done = subprocess.run(
        [sys.executable, "-c", _ALONE], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"1 {sorted(os.sched_getaffinity(0))}\n"


_DOT = """#!{python}
import sys, pygraphviz
sys.stdout.buffer.write(pygraphviz.AGraph(string=sys.stdin.read()).draw(format="json0", prog="dot"))
"""


def test_without_its_wheel_the_dot_on_the_path_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It draws the same, and has the same limit of processor time."""
    program = tmp_path / "dot"
    program.write_text(_DOT.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    installed, bundled = LayoutChild(["--installed"]), LayoutChild()
    for each in (installed, bundled):
        each.begin()
    assert ask(installed)["drawn"] == ask(bundled)["drawn"]
    with pytest.raises(NotLaidOut) as error:
        ask(installed, hopeless(), seconds=0.5)
    assert error.value.reason is LayoutFailure.TIME
    bundled.end()
