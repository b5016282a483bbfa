"""``review``: which commits and files it reads, and what it tells of them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from markdown_it import MarkdownIt

import engine
from console.cli.documents import SourceError
from console.features.coverage.measuring import Collection
from console.features.deploy.sources import MachineSource
from console.features.review.commits import Commit, Repository
from console.features.review.comparison import MachineReview, ReviewKind, field_changes
from console.features.review.markdown import (
    MARKER,
    MOST_CHARACTERS,
    Review,
    code_span,
    write_markdown,
)
from console.features.review.replays import ReplayedMachine
from console.features.review.reviewing import review_commits, write_review
from console.features.review.untried import untried_points
from tests.features.review.golden import commit, make_repository, run_git

PASS = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
TWO = {
    "StartAt": "P",
    "States": {"P": {"Type": "Pass", "Next": "Q"}, "Q": {"Type": "Succeed"}},
}


def written(value: Any) -> str:
    """Return a definition as text."""
    return json.dumps(value, indent=2)


def kinds(review: Review) -> dict[str, str]:
    """Return machine -> kind of its change."""
    return {machine.name: str(machine.kind) for machine in review.machines}


def review_last(folder: Path, *paths: str) -> Review:
    """Review the last commit."""
    return review_commits(folder, "HEAD~1..HEAD", [Path(path) for path in paths or ["."]], {})


# -- commits ---------------------------------------------------------------------------------------


def test_a_folder_without_a_repository_is_refused(tmp_path: Path) -> None:
    """The message is git's."""
    with pytest.raises(SourceError, match="not a git repository"):
        Repository(tmp_path)


def test_without_git_the_message_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No traceback, and nothing about a repository."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SourceError, match="git: there is no such program"):
        Repository(tmp_path)


@pytest.mark.parametrize(
    "text", ["HEAD", "..HEAD", "HEAD..", "a..b..c", "a....b", "--output=x..HEAD", "HEAD..-x"]
)
def test_other_ranges_are_refused(text: str, tmp_path: Path) -> None:
    """Neither is an option of git taken for a commit."""
    commit(tmp_path, {"a.asl.json": written(PASS)})
    with pytest.raises(SourceError, match=r"is no range of commits: write BASE\.\.HEAD"):
        Repository(tmp_path).commits_of(text)


def test_an_unknown_commit_is_named(tmp_path: Path) -> None:
    """In a whole clone nothing is said about shallow ones."""
    commit(tmp_path, {"a.asl.json": written(PASS)})
    with pytest.raises(SourceError, match="nothing: there is no such commit") as error:
        Repository(tmp_path).commits_of("nothing..HEAD")
    assert "shallow" not in str(error.value)


@pytest.mark.parametrize("dots", ["..", "..."])
def test_a_shallow_clone_is_named(dots: str, tmp_path: Path) -> None:
    """actions/checkout makes one; the message has its option."""
    base = commit(tmp_path / "origin", {"a.asl.json": written(PASS)})
    commit(tmp_path / "origin", {"a.asl.json": written(TWO)})
    clone = tmp_path / "clone"
    run_git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{tmp_path}/origin", str(clone))
    with pytest.raises(SourceError, match=r"shallow: .*`fetch-depth: 0` of actions/checkout"):
        Repository(clone).commits_of(f"{base}{dots}HEAD")
    run_git(clone, "fetch", "--quiet", "--unshallow")
    assert kinds(review_commits(clone, f"{base}{dots}HEAD", [Path()], {})) == {"a": "changed"}


def test_three_dots_begin_where_the_branch_began(tmp_path: Path) -> None:
    """A change of the base branch meanwhile is no change of the pull request."""
    commit(tmp_path, {"a.asl.json": written(PASS), "b.asl.json": written(PASS)})
    run_git(tmp_path, "checkout", "--quiet", "-b", "topic")
    commit(tmp_path, {"a.asl.json": written(TWO)})
    run_git(tmp_path, "checkout", "--quiet", "main")
    commit(tmp_path, {"b.asl.json": written(TWO)})
    assert kinds(review_commits(tmp_path, "main...topic", [Path()], {})) == {"a": "changed"}
    assert kinds(review_commits(tmp_path, "main..topic", [Path()], {})) == {
        "a": "changed",
        "b": "changed",
    }


def test_the_work_tree_stays_as_it_is(tmp_path: Path) -> None:
    """Changes that are not committed are neither read nor lost."""
    commit(tmp_path, {"a.asl.json": written(PASS)})
    commit(tmp_path, {"a.asl.json": written(TWO)})
    (tmp_path / "a.asl.json").write_text("edited")
    (tmp_path / "new.asl.json").write_text(written(PASS))
    before = run_git(tmp_path, "status", "--porcelain")
    assert kinds(review_last(tmp_path)) == {"a": "changed"}
    assert run_git(tmp_path, "status", "--porcelain") == before


# -- files -----------------------------------------------------------------------------------------


def test_paths_are_those_of_the_current_folder(tmp_path: Path) -> None:
    """A folder of the repository is enough; another one is refused."""
    commit(tmp_path, {"in/a.asl.json": written(PASS), "out/b.asl.json": written(PASS)})
    commit(tmp_path, {"in/a.asl.json": written(TWO), "out/b.asl.json": written(TWO)})
    assert kinds(review_last(tmp_path / "in")) == {"a": "changed"}
    assert kinds(review_last(tmp_path, "out/b.asl.json")) == {"b": "changed"}
    with pytest.raises(SourceError, match="outside of the repository"):
        review_last(tmp_path, "..")
    with pytest.raises(SourceError, match="nowhere: neither commit has such a file"):
        review_last(tmp_path, "nowhere")


def test_line_ends_and_layout_are_no_change(tmp_path: Path) -> None:
    """Nor is the order of fields."""
    commit(
        tmp_path,
        {"a.asl.json": written(PASS), "b.asl.yaml": "StartAt: P\nStates:\n  P: {Type: Succeed}\n"},
    )
    commit(
        tmp_path,
        {
            "a.asl.json": json.dumps(dict(reversed(PASS.items()))).replace(",", ",\r\n"),
            "b.asl.yaml": "StartAt: P\r\nStates:\r\n  P: {Type: Succeed}\r\n",
        },
    )
    review = review_last(tmp_path)
    assert kinds(review) == {}
    assert "no state machine changed" in write_markdown(review)


def test_a_first_definition_is_added(tmp_path: Path) -> None:
    """The base without any is no problem."""
    commit(tmp_path, {"README": "x"})
    commit(tmp_path, {"a.asl.json": written(PASS)})
    review = review_last(tmp_path)
    assert kinds(review) == {"a": "added"}
    assert not any(review.problems.values())


def test_a_renamed_file_is_the_same_machine(tmp_path: Path) -> None:
    """By its content, also if git finds no rename."""
    commit(tmp_path, {"a.asl.json": written(TWO)})
    commit(tmp_path, {"a.asl.json": None, "b.asl.json": json.dumps(TWO, indent=4)})
    (machine,) = review_last(tmp_path).machines
    assert (machine.name, machine.former_name, machine.kind) == ("b", "a", ReviewKind.CHANGED)


def test_a_name_in_two_files_is_compared_twice(tmp_path: Path) -> None:
    """``deploy`` refuses that, and the review says so; no change is left out."""
    names = ("dev/a.asl.json", "prod/a.asl.json")
    commit(tmp_path, dict.fromkeys(names, written(PASS)))
    commit(tmp_path, dict.fromkeys(names, written(TWO)))
    review = review_last(tmp_path)
    assert kinds(review) == {f"a in {name}": "changed" for name in names}
    assert "got the name a" in review.problems["head"][0]
    commit(tmp_path, {"prod/a.asl.json": None})
    assert kinds(review_last(tmp_path)) == {"a in prod/a.asl.json": "removed"}


SECRET = "hunter2-of-the-runner"
SERVICE = """
service: shop
provider: {name: aws}
stepFunctions:
  stateMachines:
    orders:
      name: orders
      definition:
        Comment: "%s"
        StartAt: P
        States: {P: {Type: Pass, End: true}}
"""


@pytest.mark.parametrize("hiding", ["file", "link", "env", "dotenv"])
def test_the_machine_of_the_reviewer_is_not_read(
    hiding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pull request may name its files and variables; the review is published."""
    monkeypatch.setenv("RUNNER_SECRET", SECRET)
    secret = tmp_path / "secret.txt"
    secret.write_text(SECRET)
    folder = tmp_path / "repository"
    calm = SERVICE % "calm"
    commit(folder, {"serverless.yml": calm})
    service = calm.replace("calm", {"file": f"${{file({secret})}}", "link": "${file(x.txt)}"}.get(
        hiding, "${env:RUNNER_SECRET}" if hiding == "env" else "${env:COPY}"))  # fmt: skip
    if hiding == "link":
        (folder / "x.txt").symlink_to(secret)
    dotenv = {".env": "COPY=${RUNNER_SECRET}\n"} if hiding == "dotenv" else {}
    commit(
        folder,
        {"serverless.yml": service.replace("provider", "useDotenv: true\nprovider"), **dotenv},
    )
    review = review_last(folder)
    for path in write_review(review, tmp_path / "output"):
        assert SECRET not in path.read_text("utf-8")
    if hiding in ("file", "link"):
        assert kinds(review) == {"orders": "hidden"}
        assert "outside of the repository" in review.problems["head"][0]


def test_a_definition_outside_is_refused(tmp_path: Path) -> None:
    """A link of a definition itself, too."""
    secret = tmp_path / "secret.json"
    secret.write_text(written({**PASS, "Comment": SECRET}))
    folder = tmp_path / "repository"
    commit(folder, {"a.asl.json": written(PASS)})
    (folder / "a.asl.json").unlink()
    (folder / "a.asl.json").symlink_to(secret)
    commit(folder, {})
    assert kinds(review_last(folder)) == {"a": "hidden"}


def test_machines_with_names_alike_have_files_of_their_own(tmp_path: Path) -> None:
    """Letters that no file has become the same one."""
    commit(tmp_path / "repository", {"README": "x"})
    names = ["a b.asl.json", "a_b.asl.json", "A_B.asl.json"]
    commit(tmp_path / "repository", dict.fromkeys(names, written(PASS)))
    paths = write_review(review_last(tmp_path / "repository"), tmp_path / "output")
    assert len({path.name.lower() for path in paths}) == len(paths) == 4


# -- comparison and Markdown -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "paths"),
    [
        ({"a": 1}, {"a": True}, ["a"]),
        ({"a": {"b": None}}, {"a": {}}, ["a.b"]),
        ({"a": [1, 2, 3]}, {"a": [1, 3]}, ["a[1]"]),
        ([{"Next": "A", "x": 1}], [{"Next": "B"}, {"Next": "A", "x": 2}], ["[0]", "[1].x"]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
        (1, 1.5, [""]),
    ],
)
def test_fields_are_compared_by_type_and_place(before: Any, after: Any, paths: list[str]) -> None:
    """``true`` is not ``1``; an inserted item changes no other."""
    assert [change.path for change in field_changes(before, after)] == paths


@pytest.mark.parametrize(
    "text",
    [
        "`",
        "``",
        "a`b``c",
        "`x`",
        "<img src=x>",
        "@octocat",
        "a\n\n# b\r\n```",
        "",
        "\u202ex",
        "\x00",
    ],
)
def test_a_code_span_holds_any_text(text: str) -> None:
    """The fence is longer than every run of backticks inside, and the span is one line."""
    span = code_span(text)
    match = re.fullmatch(r"(`+)( ?)([^\n\r]*?)\2\1", span)
    assert match is not None
    assert match[1] not in match[3]
    assert "\u202e" not in span
    assert "\x00" not in span


def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    """A renderer of Markdown makes no element, link or picture of them."""
    make_repository(tmp_path, "injection")
    text = write_markdown(review_last(tmp_path))
    tokens = MarkdownIt("commonmark").parse(text)
    inline = [child for token in tokens for child in token.children or ()]
    assert {token.type for token in inline} <= {
        *("text", "code_inline", "softbreak", "strong_open", "strong_close"),
    }
    blocks = [token.content.strip() for token in tokens if token.type == "html_block"]
    assert blocks == [MARKER, "<details><summary>Graph</summary>", "</details>"]
    plain = " ".join(token.content for token in inline if token.type == "text")
    assert not re.search(r"[<>@|]|img|script", plain)


def test_a_long_review_fits_into_a_comment() -> None:
    """The machines that have no room are named, up to a number."""
    states = {f"State {n}": {"Type": "Pass", "End": True} for n in range(30)}
    source = MachineSource("m", json.dumps({"StartAt": "State 0", "States": states}), "m.asl.json")
    machines = [
        MachineReview(f"m{n}", ReviewKind.ADDED, None, replace(source, name=f"m{n}"))
        for n in range(2000)
    ]
    text = write_markdown(Review(Commit("a", "0" * 40), Commit("b", "1" * 40), machines))
    assert len(text) < 65_536
    assert len(text) > MOST_CHARACTERS / 2
    assert re.search(r"too long: `m\d+`.* and [\d,]+ more\.\n$", text)


def test_executions_that_differ_alike_share_a_line() -> None:
    """Twenty times the same sentence tells no more than once."""
    replayed = ReplayedMachine(
        6, [(f"run-{n}", ["ends as FAILED"]) for n in range(5)], 0, (2, 2), 1
    )
    source = MachineSource("m", json.dumps(PASS), "m.asl.json")
    machine = MachineReview("m", ReviewKind.CHANGED, source, source)
    before, after = Commit("a", "0" * 40), Commit("b", "1" * 40)
    text = write_markdown(Review(before, after, [machine], replays={"m": replayed}))
    assert "- `run-0`, `run-1`, `run-2` and 2 more: `ends as FAILED`\n" in text


# -- the command -----------------------------------------------------------------------------------


def test_the_command_writes_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It prints their paths; without a server the review says so."""
    commit(tmp_path, {"a.asl.json": written(PASS)})
    commit(tmp_path, {"a.asl.json": written(TWO)})
    monkeypatch.chdir(tmp_path)
    call_command("review", "HEAD~1..HEAD", output=Path("out"), endpoint_url="http://127.0.0.1:9")
    printed = capsys.readouterr().out.splitlines()
    assert printed == ["out/a.before.svg", "out/a.after.svg", "out/review.md"]
    text = Path("out/review.md").read_text("utf-8")
    assert text.startswith(MARKER)
    assert "Replays and costs are left out: `" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"executions": 1001}, "--executions: got 1001, wanted 0 to 1000"),
        ({"param": ["x"]}, "--param: got 'x', wanted NAME=VALUE"),
        ({"output": Path("a.asl.json")}, "--output a.asl.json: File exists"),
    ],
)
def test_wrong_options_are_named(
    options: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line."""
    commit(tmp_path, {"a.asl.json": written(PASS)})
    commit(tmp_path, {"a.asl.json": written(TWO)})
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CommandError, match=re.escape(message)) as refusal:
        call_command("review", "HEAD~1..HEAD", **{"executions": 0, **options})
    assert refusal.value.returncode == 2


def test_only_the_commits_are_required() -> None:
    """The paths are not."""
    with pytest.raises(CommandError, match=r"required: BASE\.\.HEAD$"):
        call_command("review")


RISKY: dict[str, Any] = {
    "StartAt": "P",
    "States": {
        "P": {"Type": "Pass", "Next": "Call"},
        "Call": {
            "Type": "Task",
            "Resource": "${Call}",
            "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Lost"}],
            "Next": "Q",
        },
        "Q": {"Type": "Succeed"},
        "Lost": {"Type": "Fail"},
    },
}


def test_new_paths_without_a_test_are_named(tmp_path: Path) -> None:
    """Neither those that a test reached, nor those that the base has."""
    ran = {**RISKY, "States": {**RISKY["States"]}}
    ran["States"]["Call"] = {
        **RISKY["States"]["Call"],
        "Resource": "arn:aws:lambda:us-east-1:123456789012:function:call",
    }
    collection = Collection()
    machine = collection.machine(written(ran))
    result = engine.run(written(ran), tasks={"call": lambda _: 1})
    machine.add_runs("engine.run", machine.reader.read(result.events))
    file = tmp_path / "coverage.json"
    file.write_text(collection.write_text())
    folder = tmp_path / "repository"
    commit(folder, {"a.asl.json": written(TWO), "b.asl.json": written(TWO)})
    commit(folder, {"a.asl.json": written(RISKY), "b.asl.json": written(PASS).replace("P", "?")})
    review = review_last(folder)
    untried = untried_points(review.machines, [file])
    points = [point.key for point in untried["a"] or ()]
    assert points == ["Call/Catch[0]", "Lost"]
    text = write_markdown(replace(review, untried=untried))
    assert "**New paths that no test has executed:**\n\n- Catcher `Call/Catch[0]`\n" in text
    assert untried_points(review.machines, []) == {}
    file.write_text("[]")
    with pytest.raises(SourceError, match=r"coverage\.json"):
        untried_points(review.machines, [file])


def test_policies_and_options_of_the_template_are_compared(tmp_path: Path) -> None:
    """A role that may more is a change, though the definition is the same."""
    template = """
Transform: AWS::Serverless-2016-10-31
Resources:
  A:
    Type: AWS::Serverless::StateMachine
    Properties:
      Name: a
      Definition: {StartAt: P, States: {P: {Type: Pass, End: true}}}
      Policies:
        - {Version: 2012-10-17, Statement: [{Effect: Allow, Action: %s, Resource: "*"}]}
"""
    commit(tmp_path, {"template.yaml": template % "sqs:SendMessage"})
    commit(tmp_path, {"template.yaml": template % '"*"'})
    text = write_markdown(review_last(tmp_path))
    assert "changed from `sqs:SendMessage` to `*`" in text


CALLING = """
Transform: AWS::Serverless-2016-10-31
Resources:
  A:
    Type: AWS::Serverless::StateMachine
    Properties:
      Name: a
      Definition:
        StartAt: Send
        States:
          Send:
            Type: Task
            Resource: arn:aws:states:::sqs:sendMessage
            Parameters: {QueueUrl: q, MessageBody: m}
            End: true
      Policies: [%s]
"""
POLICY = """{Version: 2012-10-17, Statement: [{Effect: Allow, Action: %s, Resource: "*"}]}"""


def test_a_permission_that_the_role_loses_is_a_new_problem(tmp_path: Path) -> None:
    """The definition needs the same as before, and lint would warn of it."""
    commit(tmp_path, {"template.yaml": CALLING % (POLICY % "sqs:SendMessage")})
    commit(tmp_path, {"template.yaml": CALLING % (POLICY % "sqs:ReceiveMessage")})
    text = write_markdown(review_last(tmp_path))
    assert "**New problems:**" in text
    assert "`MISSING_PERMISSION: role ARole: missing: Send: sqs:SendMessage" in text


def test_a_policy_that_cannot_be_read_is_compared_by_its_name(tmp_path: Path) -> None:
    """It may be all that the role is allowed, so its removal is a change; a move is none."""
    own = POLICY % "sqs:SendMessage"
    arn = "arn:aws:iam::123456789012:policy/guard"
    commit(tmp_path, {"template.yaml": CALLING % f"{own}, {arn}"})
    commit(tmp_path, {"template.yaml": CALLING % own})
    text = write_markdown(review_last(tmp_path))
    assert f'`UnreadPolicies` removed: `["A: the policy {arn} is not here"]`' in text
    commit(tmp_path, {"template.yaml": CALLING % f"{own}, {arn}"})
    (tmp_path / "template.yaml").rename(tmp_path / "other.yaml")
    commit(tmp_path, {})
    assert "UnreadPolicies" not in write_markdown(review_last(tmp_path))


def test_a_link_in_the_output_folder(tmp_path: Path) -> None:
    """A commit with links in the folder of the review does not write to other files."""
    commit(tmp_path / "repository", {"a.asl.json": written(PASS)})
    commit(tmp_path / "repository", {"a.asl.json": written(TWO)})
    review = review_last(tmp_path / "repository")
    other, output = tmp_path / "other", tmp_path / "output"
    other.write_text("mine")
    output.mkdir()
    (output / "review.md").symlink_to(other)
    (output / "a.after.svg").symlink_to(tmp_path / "new")
    write_review(review, output)
    assert other.read_text() == "mine"
    assert not (tmp_path / "new").exists()
    assert (output / "review.md").read_text().startswith(MARKER)
    (tmp_path / "link").symlink_to(output)
    with pytest.raises(OSError, match="A symbolic link is no folder"):
        write_review(review, tmp_path / "link")
