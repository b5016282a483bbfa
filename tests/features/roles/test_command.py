"""``stateyard role``, and the roles that ``lint`` reads from the files of each tool."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from console import command_line

if TYPE_CHECKING:
    from pathlib import Path

CHILD = "arn:aws:states:us-east-1:123456789012:stateMachine:child"
NESTED = {
    "StartAt": "Run child",
    "States": {
        "Run child": {
            "Type": "Task",
            "Resource": "arn:aws:states:::states:startExecution.sync:2",
            "Parameters": {"StateMachineArn": CHILD},
            "End": True,
        }
    },
}
_REGION = "us-east-1:123456789012"
_RULE = "StepFunctionsGetEventsForStepFunctionsExecutionRule"
START = {"Effect": "Allow", "Action": "states:StartExecution", "Resource": CHILD}
FOLLOW = {
    "Effect": "Allow",
    "Action": ["states:DescribeExecution", "states:StopExecution"],
    "Resource": f"arn:aws:states:{_REGION}:execution:child:*",
}
RULE = {
    "Effect": "Allow",
    "Action": ["events:PutTargets", "events:PutRule", "events:DescribeRule"],
    "Resource": "*",
}
MISSING_RULE = "missing: Run child: events:PutTargets, events:PutRule, events:DescribeRule on"


def run(capsys: pytest.CaptureFixture[str], command: str, *words: object) -> tuple[int, str, str]:
    """Run a command; return its exit code and what it wrote to stdout and stderr."""
    with pytest.raises(SystemExit) as end:
        command_line.main([command, *map(str, words)])
    written = capsys.readouterr()
    return int(end.value.code or 0), written.out, written.err


def policy(*statements: dict[str, Any]) -> dict[str, Any]:
    """Return a policy."""
    return {"Version": "2012-10-17", "Statement": list(statements)}


def write(path: Path, document: Any) -> Path:
    """Write a JSON file; return its path."""
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def cloudformation(*statements: dict[str, Any]) -> dict[str, Any]:
    """Return a template whose role has an inline policy, with an attached policy of the rest."""
    return {
        "Resources": {
            "Flow": {
                "Type": "AWS::StepFunctions::StateMachine",
                "Properties": {
                    "DefinitionString": json.dumps(NESTED),
                    "RoleArn": {"Fn::GetAtt": ["Role", "Arn"]},
                },
            },
            "Role": {
                "Type": "AWS::IAM::Role",
                "Properties": {
                    "AssumeRolePolicyDocument": {},
                    "Policies": [
                        {"PolicyName": "start", "PolicyDocument": policy(*statements[:1])}
                    ],
                },
            },
            "RoleDefaultPolicy": {
                "Type": "AWS::IAM::Policy",
                "Properties": {
                    "PolicyName": "rest",
                    "PolicyDocument": policy(*statements[1:]),
                    "Roles": [{"Ref": "Role"}],
                },
            },
        }
    }


def sam(*statements: dict[str, Any]) -> dict[str, Any]:
    """Return a template of SAM, which makes the role of the Policies."""
    return {
        "Transform": "AWS::Serverless-2016-10-31",
        "Resources": {
            "Flow": {
                "Type": "AWS::Serverless::StateMachine",
                "Properties": {"Definition": NESTED, "Policies": [policy(*statements)]},
            }
        },
    }


def terraform(*statements: dict[str, Any]) -> dict[str, Any]:
    """Return a plan in which the ARN of the role is not known yet."""
    resources = [
        {
            "address": "aws_sfn_state_machine.flow",
            "type": "aws_sfn_state_machine",
            "values": {"name": "flow", "definition": json.dumps(NESTED)},
        },
        {
            "address": "aws_iam_role.flow",
            "type": "aws_iam_role",
            "values": {"name": "flow-role"},
        },
        {
            "address": "aws_iam_role_policy.flow",
            "type": "aws_iam_role_policy",
            "values": {"role": "flow-role", "policy": json.dumps(policy(*statements))},
        },
    ]
    references = {"references": ["aws_iam_role.flow.arn", "aws_iam_role.flow"]}
    configured = {"address": "aws_sfn_state_machine.flow", "expressions": {"role_arn": references}}
    return {
        "format_version": "1.2",
        "planned_values": {"root_module": {"resources": resources}},
        "configuration": {"root_module": {"resources": [configured]}},
    }


LAYOUTS = {
    "template.json": cloudformation,
    "sam/template.json": sam,
    "plan.json": terraform,
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_lint_names_what_the_role_of_a_nested_start_lacks(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a statement its actions are named; with all three nothing is said."""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    every: tuple[dict[str, Any], ...] = (START, FOLLOW, RULE)
    for number, actions in enumerate(
        ("states:StartExecution on", "states:DescribeExecution, states:StopExecution on", None)
    ):
        rest = [statement for place, statement in enumerate(every) if place != number]
        write(path, LAYOUTS[name](*rest))
        code, _, errors = run(capsys, "lint", path)
        words = f"missing: Run child: {actions}" if actions else MISSING_RULE
        assert (code, words in errors, errors.count("missing")) == (0, True, 1)
        assert run(capsys, "lint", "--role", "enforce", path)[0] == 1
        assert run(capsys, "lint", "--role", "off", path) == (0, run(capsys, "lint", path)[1], "")
    write(path, LAYOUTS[name](*every))
    code, _, errors = run(capsys, "lint", "--role", "enforce", path)
    assert (code, errors) == (0, "")


@pytest.mark.parametrize(("mode", "severity"), [("report", "WARNING"), ("enforce", "ERROR")])
def test_lint_reports_permissions_in_every_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: str, severity: str
) -> None:
    """A program gets a problem of the state machine; GitHub gets an annotation of the file."""
    path = write(tmp_path / "template.json", cloudformation(START, FOLLOW))
    words = ("lint", "--role", mode, path, "--format")
    code, text, errors = run(capsys, *words, "json")
    reports = [json.loads(line) for line in text.splitlines()]
    (problem,) = [problem for report in reports for problem in report["problems"]]
    assert (problem["severity"], problem["code"]) == (severity, "MISSING_PERMISSION")
    assert MISSING_RULE in problem["message"]
    assert (code, errors) == (int(mode == "enforce"), "")
    code, text, errors = run(capsys, *words, "github")
    assert text.startswith(f"::{severity.lower()} file={path},line=1,col=1::")
    assert MISSING_RULE in text
    assert (code, errors) == (int(mode == "enforce"), "")


SAM = """
Transform: AWS::Serverless-2016-10-31
Resources:
  Notify:
    Type: AWS::Serverless::Function
  Orders:
    Type: AWS::DynamoDB::Table
  Flow:
    Type: AWS::Serverless::StateMachine
    Connectors:
      ToOrders: {{Properties: {{Destination: {{Id: Orders}}, Permissions: [Write]}}}}
    Properties:
      Tracing: {{Enabled: true}}
      Definition:
        StartAt: Notify
        States:
          Notify: {{Type: Task, Resource: !GetAtt Notify.Arn, Next: Put}}
          Put:
            Type: Task
            Resource: arn:aws:states:::dynamodb:putItem
            Parameters: {{TableName: !Ref Orders, Item: {{}}}}
            End: true
      Policies: {policies}
"""


def test_policy_templates_of_sam(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Templates are expanded with their parameters; connectors and unknown ones are named."""
    path = tmp_path / "template.yaml"
    policies = "[{LambdaInvokePolicy: {FunctionName: !Ref Notify}}, {NoSuchPolicy: {}}]"
    path.write_text(SAM.format(policies=policies), "utf-8")
    code, text, _ = run(capsys, "role", path, "--format", "json")
    (report,) = json.loads(text)
    verdicts = {each["action"]: each["verdict"] for each in report["permissions"]}
    assert code == 0
    assert verdicts.pop("dynamodb:PutItem") == "unknown"
    assert verdicts == dict.fromkeys(verdicts, "allowed")
    assert {"lambda:InvokeFunction", "xray:PutTraceSegments"} <= verdicts.keys()
    gaps = " ".join(report["gaps"])
    assert "the policies of the connector ToOrders are unknown" in gaps
    assert "SAM's policy template NoSuchPolicy is not here" in gaps
    other = "[{DynamoDBWritePolicy: {TableName: !Ref Orders}}]"
    path.write_text(SAM.format(policies=other), "utf-8")
    _, text, _ = run(capsys, "role", path, "--format", "json")
    verdicts = {each["action"]: each["verdict"] for each in json.loads(text)[0]["permissions"]}
    assert verdicts["dynamodb:PutItem"] == "allowed"
    assert verdicts["lambda:InvokeFunction"] == "unknown"  # the connector may allow it


def test_the_least_policy_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON that the same command accepts as a policy; account and region are given or stay."""
    path = write(tmp_path / "flow.asl.json", NESTED)
    code, text, _ = run(capsys, "role", path, "--account", "123456789012", "--region", "us-east-1")
    least = json.loads(text)
    assert code == 0
    rule = f"arn:aws:events:{_REGION}:rule/{_RULE}"
    assert least["Statement"][0] == {
        "Effect": "Allow",
        "Action": ["events:DescribeRule", "events:PutRule", "events:PutTargets"],
        "Resource": [rule],
    }
    file = write(tmp_path / "policy.json", least)
    words = ("--account", "123456789012", "--region", "us-east-1", "--format", "text")
    code, text, _ = run(capsys, "role", path, "--policy", file, *words)
    assert (code, text) == (
        0,
        "flow: 0 missing, 0 denied, 0 unknown, 6 allowed, 0 never used\n",
    )
    _, text, _ = run(capsys, "role", path)
    assert f"arn:aws:events:${{AWS::Region}}:${{AWS::AccountId}}:rule/{_RULE}" in text


def test_a_policy_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It stands for the role; what it lacks ends the rehearsal with 1, a bad one with 2."""
    path = write(tmp_path / "flow.asl.json", NESTED)
    file = write(tmp_path / "policy.json", policy(START, FOLLOW))
    code, text, _ = run(capsys, "role", path, "--policy", file, "--format", "text")
    assert code == 1
    assert MISSING_RULE in text
    assert MISSING_RULE in run(capsys, "lint", path, "--policy", file)[2]
    code, text, _ = run(capsys, "role", path, "--policy", file, "--format", "junit")
    assert (code, text.count("<failure")) == (1, 3)
    code, _, errors = run(capsys, "role", path, "--policy", path, "--format", "text")
    assert code == 2
    assert "got no Statement, wanted a policy: an object with Statement" in errors
    code, text, _ = run(capsys, "role", path, "--format", "text")
    assert (code, text.split(",")[2]) == (0, " 6 unknown")


SERVERLESS = """
service: shop
provider: {name: aws}
stepFunctions:
  stateMachines:
    flow:
      iamRoleStatements:
        - {Effect: Allow, Action: "states:StartExecution", Resource: "*"}
      definition: DEFINITION
"""


@pytest.mark.parametrize(
    ("command", "words", "problem"),
    [
        ("role", ("flow.json",), "--policy: got --format policy, wanted text, json, junit"),
        (
            "lint",
            ("--role", "off", "flow.json"),
            "--policy: got --role off, wanted report or enforce",
        ),
        ("lint", ("-",), "-: got stdin, wanted files for --policy and --role enforce"),
    ],
)
def test_a_policy_that_is_not_compared_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    words: tuple[str, ...],
    problem: str,
) -> None:
    """The least policy does not depend on it, and lint rehearses no role of stdin."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(NESTED)))
    write(tmp_path / "flow.json", NESTED)
    file = write(tmp_path / "policy.json", policy(START))
    code, _, errors = run(capsys, command, *words, "--policy", file)
    assert (code, errors) == (2, f"stateyard: {problem}\n")


def test_a_role_that_the_serverless_plugin_makes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its own statements are read; what the plugin makes of the definition is not known."""
    path = tmp_path / "serverless.yml"
    path.write_text(SERVERLESS.replace("DEFINITION", json.dumps(NESTED)), "utf-8")
    code, text, _ = run(capsys, "role", path, "--format", "json")
    (report,) = json.loads(text)
    verdicts = {each["action"]: each["verdict"] for each in report["permissions"]}
    assert (code, verdicts["states:StartExecution"]) == (0, "allowed")
    assert verdicts["events:PutRule"] == "unknown"
    assert "the Step Functions plugin creates" in report["gaps"][0]
    code, _, errors = run(capsys, "lint", path)
    assert code == 0
    assert "5 permissions are not known; `stateyard role` lists them" in errors


def test_a_permissions_boundary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One of the template limits the role; one that is not here makes everything unknown."""
    for boundary, verdicts in (
        ({"Ref": "Boundary"}, {"states:StartExecution": "allowed", "events:PutRule": "missing"}),
        (
            "arn:aws:iam::123456789012:policy/elsewhere",
            {"states:StartExecution": "unknown", "events:PutRule": "unknown"},
        ),
    ):
        template = sam(START, FOLLOW, RULE)
        template["Resources"]["Flow"]["Properties"]["PermissionsBoundary"] = boundary
        template["Resources"]["Boundary"] = {
            "Type": "AWS::IAM::ManagedPolicy",
            "Properties": {"PolicyDocument": policy({**START, "Action": "states:*"})},
        }
        path = write(tmp_path / "template.json", template)
        (report,) = json.loads(run(capsys, "role", path, "--format", "json")[1])
        each = {said["action"]: said["verdict"] for said in report["permissions"]}
        assert {action: each[action] for action in verdicts} == verdicts


NOTHING = {"Ref": "AWS::NoValue"}
ON = {"Fn::Equals": ["a", "a"]}
OFF = {"Fn::Equals": ["a", "b"]}


@pytest.mark.parametrize(
    ("properties", "condition", "verdict"),
    [
        ({"ManagedPolicyArns": [{"Ref": "Own"}]}, ON, "allowed"),
        ({"ManagedPolicyArns": [{"Fn::GetAtt": ["Own", "PolicyArn"]}]}, ON, "allowed"),
        ({"ManagedPolicyArns": [{"Fn::GetAtt": "Own.PolicyArn"}]}, ON, "allowed"),
        (
            {"ManagedPolicyArns": [{"Fn::Sub": "arn:aws:iam::${AWS::AccountId}:policy/p/own"}]},
            ON,
            "allowed",
        ),
        ({"ManagedPolicyArns": [{"Fn::If": ["C", {"Ref": "Own"}, NOTHING]}]}, ON, "allowed"),
        ({"ManagedPolicyArns": [{"Fn::If": ["C", {"Ref": "Own"}, NOTHING]}]}, OFF, "missing"),
        ({"ManagedPolicyArns": {"Fn::If": ["C", [{"Ref": "Own"}], NOTHING]}}, OFF, "missing"),
        (
            {"ManagedPolicyArns": [{"Ref": "Own"}], "PermissionsBoundary": NOTHING},
            ON,
            "allowed",
        ),
        (
            {"ManagedPolicyArns": [{"Ref": "Own"}, "arn:aws:iam::aws:policy/AWSDenyAll"]},
            ON,
            "denied",
        ),
    ],
)
def test_managed_policies_of_a_template(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    properties: dict[str, Any],
    condition: dict[str, Any],
    verdict: str,
) -> None:
    """A policy of the template counts however it is named; AWS::NoValue is none."""
    template = cloudformation()
    resources = template["Resources"]
    resources["Role"]["Properties"] = {"AssumeRolePolicyDocument": {}, **properties}
    resources["Own"] = {
        "Type": "AWS::IAM::ManagedPolicy",
        "Properties": {
            "ManagedPolicyName": "own",
            "Path": "/p/",
            "PolicyDocument": policy(START, FOLLOW, RULE),
        },
    }
    template["Conditions"] = {"C": condition}
    path = write(tmp_path / "template.json", template)
    (report,) = json.loads(run(capsys, "role", path, "--format", "json")[1])
    assert {each["verdict"] for each in report["permissions"]} == {verdict}
    assert report["gaps"] == []


@pytest.mark.parametrize("listed", [True, False])
def test_policies_of_sam_under_a_condition(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], listed: bool
) -> None:
    """An entry or a list that a condition leaves out hides no missing permission."""
    for condition, code in ((ON, 0), (OFF, 1)):
        template = sam()
        own = policy(START, FOLLOW, RULE)
        said: Any = {"Fn::If": ["C", [own] if not listed else own, NOTHING]}
        template["Resources"]["Flow"]["Properties"]["Policies"] = [said] if listed else said
        template["Conditions"] = {"C": condition}
        path = write(tmp_path / "template.json", template)
        got, text, _ = run(capsys, "role", path, "--format", "text")
        assert (got, "not read" in text) == (code, False)


def test_a_policy_that_is_not_read_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may deny what the others allow, so report and lint name it beside allowed calls."""
    template = cloudformation(START, FOLLOW, RULE)
    arn = "arn:aws:iam::123456789012:policy/guard"
    template["Resources"]["Role"]["Properties"]["ManagedPolicyArns"] = [arn]
    path = write(tmp_path / "template.json", template)
    code, text, _ = run(capsys, "role", path, "--format", "text")
    assert (code, "0 unknown" in text) == (0, True)
    assert f"not read: {path}: Role: the policy {arn} is not here" in text
    code, _, errors = run(capsys, "lint", path)
    assert (code, f"unread policies may deny calls: {path}: Role: the policy {arn}" in errors) == (
        0,
        True,
    )


def test_enforce_says_that_nothing_was_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The role is elsewhere: a note with enforce, no word with report."""
    template = cloudformation()
    template["Resources"]["Flow"]["Properties"]["RoleArn"] = {"Fn::ImportValue": "role"}
    path = write(tmp_path / "template.json", template)
    for mode, noted in (("report", False), ("enforce", True)):
        code, _, errors = run(capsys, "lint", path, "--role", mode)
        assert (code, "no permission was checked" in errors) == (0, noted)


def test_attachments_of_terraform(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both kinds of attachments count; a policy that is known after apply is a gap."""
    plan = terraform(START)
    resources = plan["planned_values"]["root_module"]["resources"]
    arn = "arn:aws:iam::123456789012:policy/follow"
    resources += [
        {
            "address": "aws_iam_policy.follow",
            "type": "aws_iam_policy",
            "values": {"arn": arn, "policy": json.dumps(policy(FOLLOW))},
        },
        {
            "address": "aws_iam_policy_attachment.follow",
            "type": "aws_iam_policy_attachment",
            "values": {"roles": ["flow-role"], "policy_arn": arn},
        },
    ]
    path = write(tmp_path / "plan.json", plan)
    errors = run(capsys, "lint", path)[2]
    assert (errors.count("missing"), MISSING_RULE in errors) == (1, True)
    resources.append(
        {
            "address": "aws_iam_role_policy_attachment.rule",
            "type": "aws_iam_role_policy_attachment",
            "values": {"role": "flow-role"},
        }
    )
    write(path, plan)
    code, text, _ = run(capsys, "role", path, "--format", "text")
    assert (code, "events:PutRule" in text, "missing:" in text) == (0, True, False)
    assert "its policy is known after apply" in text


def _planned(kind: str, own: str, index: str = "", module: str = "", **values: Any) -> Any:
    """Return a resource of a plan."""
    return {"address": f"{module}{kind}.{own}{index}", "type": kind, "values": values}


def _configured(kind: str, own: str, **fields: list[str]) -> dict[str, Any]:
    """Return the configuration of a resource, whose fields have references."""
    expressions = {key: {"references": said} for key, said in fields.items()}
    return {"address": f"{kind}.{own}", "type": kind, "expressions": expressions}


MACHINE = ("aws_sfn_state_machine", "m")
ROLE = ("aws_iam_role", "r")
ROLE_POLICY = ("aws_iam_role_policy", "p")
OF_ROLE = ["aws_iam_role.r.arn", "aws_iam_role.r"]
ENOUGH = json.dumps(policy({"Effect": "Allow", "Action": "*", "Resource": "*"}))
LITTLE = json.dumps(policy({"Effect": "Allow", "Action": "s3:*", "Resource": "*"}))
FLOW = {"name": "flow", "definition": json.dumps(NESTED)}
IN_MODULE = "module.flow."


def plan_of(
    resources: list[dict[str, Any]], configured: list[dict[str, Any]], **root: Any
) -> dict[str, Any]:
    """Return a plan, in which ARNs are not known yet."""
    return {
        "format_version": "1.2",
        "planned_values": {"root_module": {"resources": resources}},
        "configuration": {"root_module": {"resources": configured, **root}},
    }


def role_plan(role: dict[str, Any], **fields: list[str]) -> dict[str, Any]:
    """Return a plan of a state machine and its role with enough permissions."""
    inline = [{"name": "p", "policy": ENOUGH}]
    return plan_of(
        [_planned(*MACHINE, **FLOW), _planned(*ROLE, name="r", inline_policy=inline, **role)],
        [_configured(*MACHINE, role_arn=OF_ROLE), _configured(ROLE[0], ROLE[1], **fields)],
    )


def counted_plan(reference: list[str], index: str, text: str = ENOUGH) -> dict[str, Any]:
    """Return a plan of a state machine with the role ``r`` and a policy of one of its instances."""
    return plan_of(
        [
            _planned(*MACHINE, **FLOW),
            _planned(*ROLE, "[0]", name="r0"),
            _planned(*ROLE, "[1]", name="r1"),
            _planned(*ROLE_POLICY, index, policy=text),
        ],
        [
            _configured(*MACHINE, role_arn=["aws_iam_role.r[0].arn", "aws_iam_role.r[0]"]),
            _configured(*ROLE),
            _configured(*ROLE_POLICY, role=reference),
        ],
    )


def module_plan(text: str, role: list[str]) -> dict[str, Any]:
    """Return a plan with the state machine in a module that gets its role from another one."""
    configured = [
        _configured(*MACHINE, role_arn=["var.role"]),
        _configured(*ROLE_POLICY, role=role),
    ]
    roles = {
        "resources": [_configured(*ROLE)],
        "outputs": {"arn": {"expression": {"references": OF_ROLE}}},
    }
    arguments = {"role": {"references": ["module.roles.arn", "module.roles"]}}
    return plan_of(
        [
            _planned(*MACHINE, module=IN_MODULE, **FLOW),
            _planned(*ROLE, module="module.roles.", name="r"),
            _planned(*ROLE_POLICY, "[0]", module=IN_MODULE, policy=text),
        ],
        [],
        module_calls={
            "flow": {"expressions": arguments, "module": {"resources": configured}},
            "roles": {"module": roles},
        },
    )


@pytest.mark.parametrize(
    ("plan", "verdict"),
    [
        (counted_plan(["aws_iam_role.r[0].id", "aws_iam_role.r[0]"], ""), "allowed"),
        (counted_plan(["aws_iam_role.r[1].id", "aws_iam_role.r[1]"], ""), "missing"),
        (counted_plan(["aws_iam_role.r", "count.index"], "[0]"), "allowed"),
        (counted_plan(["aws_iam_role.r", "count.index"], "[1]"), "missing"),
        (counted_plan(["aws_iam_role.r", "each.value"], '["a"]'), "unknown"),
        (counted_plan(["local.role"], ""), "unknown"),
        (counted_plan(["aws_iam_role.other.id", "aws_iam_role.other"], ""), "missing"),
        (module_plan(ENOUGH, ["var.role"]), "allowed"),
        (module_plan(LITTLE, ["var.role"]), "missing"),
        (module_plan(ENOUGH, ["local.role"]), "unknown"),
        (role_plan({"permissions_boundary": None}, permissions_boundary=["var.b"]), "allowed"),
        (role_plan({}, permissions_boundary=["aws_iam_policy.b.arn"]), "unknown"),
        (
            role_plan({"managed_policy_arns": ["arn:aws:iam::aws:policy/AWSDenyAll"]}),
            "denied",
        ),
    ],
)
def test_what_a_plan_refers_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], plan: dict[str, Any], verdict: str
) -> None:
    """Counted resources, loops, modules and locals: right, or unknown if only the apply knows."""
    path = write(tmp_path / "plan.json", plan)
    (report,) = json.loads(run(capsys, "role", path, "--format", "json")[1])
    assert {each["verdict"] for each in report["permissions"]} == {verdict}, report["gaps"]


@pytest.mark.parametrize(
    ("own", "verdict"), [({"name": "p"}, "unknown"), ({"name": "", "policy": ""}, "missing")]
)
def test_an_inline_policy_of_a_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], own: dict[str, str], verdict: str
) -> None:
    """One that is known after apply is a gap; a role without any has an empty one."""
    plan = role_plan({})
    plan["planned_values"]["root_module"]["resources"][1]["values"]["inline_policy"] = [own]
    path = write(tmp_path / "plan.json", plan)
    (report,) = json.loads(run(capsys, "role", path, "--format", "json")[1])
    assert {each["verdict"] for each in report["permissions"]} == {verdict}
