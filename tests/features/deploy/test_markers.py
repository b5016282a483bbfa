"""No marker of a tool is deployed: it gets a value, or one run names all that are missing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from console.cli.account import Account
from console.cli.documents import WARNINGS, SourceError
from console.features.deploy.discovery import read_paths
from console.features.deploy.parameters import Parameters

if TYPE_CHECKING:
    from pathlib import Path

    from console.features.deploy.sources import SourceProject


def definition(value: Any) -> dict[str, Any]:
    """Return a definition whose only state yields a value."""
    return {
        "StartAt": "P",
        "States": {"P": {"Type": "Pass", "Result": {"v": value}, "End": True}},
    }


def read(path: Path, **parameters: str) -> SourceProject:
    """Read a project with the values of ``--param``."""
    return read_paths([path], Account(), Parameters(parameters))


def missing(path: Path) -> list[str]:
    """Return the lines about a project that cannot be deployed."""
    with pytest.raises(SourceError) as refused:
        read(path)
    return str(refused.value).splitlines()


def value_of(project: SourceProject) -> Any:
    """Return what the only state of the only state machine yields."""
    (machine,) = project.machines
    return json.loads(machine.definition)["States"]["P"]["Result"]["v"]


def service(folder: Path, value: Any, **more: Any) -> Path:
    """Write a service of the Serverless Framework; ``files``: beside it."""
    for name, text in more.pop("files", {}).items():
        (folder / name).write_text(text, "utf-8")
    machines = {"m": {"name": "m", "definition": definition(value)}}
    body = {"service": "shop", "stepFunctions": {"stateMachines": machines}, **more}
    (folder / "serverless.yml").write_text(yaml.safe_dump(body), "utf-8")
    return folder


def template(folder: Path, value: Any, **more: Any) -> Path:
    """Write a template; ``files``: beside it."""
    for name, text in more.pop("files", {}).items():
        (folder / name).write_text(text, "utf-8")
    machine = {
        "Type": "AWS::Serverless::StateMachine",
        "Properties": {"Definition": definition(value)},
    }
    others = {"X": {"Type": "AWS::EC2::VPC"}, "Y": {"Type": "Custom::Thing"}}
    body = {"Resources": {"M": machine, **others, **more.pop("resources", {})}, **more}
    (folder / "template.yaml").write_text(yaml.safe_dump(body), "utf-8")
    return folder


OBJECTS = {"obj": {"k": 1}, "al": "${self:custom.obj}", "deep": "${self:custom.al}"}


@pytest.mark.parametrize(
    ("value", "more", "expected"),
    [
        ("${strToBool(true)}", {}, True),
        ("${strToBool(${self:custom.no})}", {"custom": {"no": "0"}}, False),
        ("${ssm:/a/b, 'dd'}", {}, "dd"),
        ("${ssm:/a/b, ${cf:other.Out, 7}}", {}, 7),
        ("x-${self:custom.flag}", {"custom": {"flag": True}}, "x-true"),
        ("${self:custom.no, ${self:custom.list}}", {"custom": {"list": [1, 2]}}, [1, 2]),
        ("${self:custom.no, self:custom.list}", {"custom": {"list": [1, 2]}}, [1, 2]),
        (
            "${self:custom.w.plain}",
            {"files": {"w.json": '{"plain": 6}'}, "custom": {"w": "${file(w.json)}"}},
            6,
        ),
        ("${self:custom.al.k}", {"custom": OBJECTS}, 1),
        ("${self:custom.deep.k}", {"custom": OBJECTS}, 1),
        ("${self:custom.${opt:stage, 'dev'}.n}", {"custom": {"dev": {"n": 3}}}, 3),
        ("${file(c.${sls:stage}.yml):n}", {"files": {"c.dev.yml": "n: '${self:service}'"}}, "shop"),
        (1, {"functions": [{"one": {"handler": "a.b"}}]}, 1),
        ("${param:secs}", {"params": {"default": {"secs": 3}}}, 3),
        ("${param:secs}", {"params": {"default": {"secs": 3}, "dev": {"secs": 4}}}, 4),
        (
            "${self:provider.stage}",
            {"provider": "${file(p.yml)}", "files": {"p.yml": "stage: qa"}},
            "qa",
        ),
        ("${env:YARD_X}", {"useDotenv": True, "files": {".env": "YARD_X='a b'\n"}}, "a b"),
        (
            "${env:YARD_X}",
            {"useDotenv": True, "files": {".env": "YARD_X=1\n", ".env.dev": "YARD_X=2\n"}},
            "2",
        ),
        ("#{AWS::AccountId}/${AWS::Region}", {}, "123456789012/us-east-1"),
        ("{% ${ id: price } %}", {}, "{% ${ id: price } %}"),
        ("{% ${id:price} %}", {}, "{% ${id:price} %}"),
    ],
)
def test_variables_of_serverless(
    tmp_path: Path, value: Any, more: dict[str, Any], expected: Any
) -> None:
    """Sources, fallbacks and paths through files; a whole value keeps its type."""
    assert value_of(read(service(tmp_path, value, **more))) == expected


MARKERS = {
    "${ssm:/a/b}": "/a/b",
    "${ssm(eu-west-1):/a/c}": "/a/c",
    "${cf:other.Out}": "other.Out",
    "${cf(eu-west-1):stack.Out}": "stack.Out",
    "${s3:bucket/key}": "bucket/key",
    "${git:branch}": "branch",
    "${env:YARD_NOBODY}": "YARD_NOBODY",
    "${opt:nobody}": "nobody",
    "${sls:instanceId}": "instanceId",
    "${aws:userId}": "userId",
    "${param:nothing}": "nothing",
    "${terraform:out}": "out",
    "${self:custom.none}": "custom.none",
    "${file(none.yml):a}": "'file(none.yml):a'",
    "${file(x.js):a}": "'file(x.js):a'",
    "${Plain}": "Plain",
    "{{resolve:ssm:/x/y}}": "ssm:/x/y",
    "#{AWS::Nothing}": "AWS::Nothing",
}


def test_one_run_names_every_marker(tmp_path: Path) -> None:
    """With file, place, marker and the option; each option then gives its value, with its type."""
    folder = service(tmp_path, [*MARKERS, *(f"in {marker}" for marker in MARKERS)])
    (folder / "x.js").write_text("module.exports = {a: 1}", "utf-8")
    lines = missing(folder)
    assert len(lines) == len(MARKERS)
    for marker, name in MARKERS.items():
        (line,) = (line for line in lines if marker in line)
        assert line.startswith(f"{folder}/serverless.yml: m.definition")
        assert line.endswith(f"wanted --param {name}=VALUE")
    parameters = {name.strip("'"): str(number) for number, name in enumerate(MARKERS.values())}
    value = value_of(read(folder, **parameters))
    numbers = list(range(len(MARKERS)))
    texts = {"${Plain}", "#{AWS::Nothing}"}  # which stay texts, as CloudFormation has them
    expected = [
        str(number) if marker in texts else number
        for number, marker in zip(numbers, MARKERS, strict=True)
    ]
    assert value == [*expected, *(f"in {number}" for number in numbers)]


def test_a_value_may_be_json_and_stays_as_written_in_a_text(tmp_path: Path) -> None:
    """Lists, objects, booleans; a version number keeps its zero; quotes make a text of a number."""
    markers = ["${ssm:/a}", "${ssm:/b}", "${ssm:/c}", "v${ssm:/d}", "${ssm:/e}"]
    folder = service(tmp_path, markers)
    parameters = {"/a": "[1, 2]", "/b": '{"k": true}', "/c": "false", "/d": "1.10", "/e": '"7"'}
    assert value_of(read(folder, **parameters)) == [[1, 2], {"k": True}, False, "v1.10", "7"]


def test_what_the_state_machine_does_not_need_is_not_asked_for(tmp_path: Path) -> None:
    """Variables of functions' environments and of other resources."""
    functions = {"one": {"handler": "a.b", "environment": {"KEY": "${ssm:/secret}"}}}
    resources = {"Resources": {"T": {"Type": "AWS::SNS::Topic", "Properties": "${cf:a.b}"}}}
    folder = service(tmp_path, 1, functions=functions, resources=resources)
    assert value_of(read(folder)) == 1


@pytest.mark.parametrize("value", ["x${self:custom.list}", "x${self:custom.none, null}"])
def test_no_text_holds_a_list_or_null(tmp_path: Path, value: str) -> None:
    """The line names the variable."""
    (line,) = missing(service(tmp_path, value, custom={"list": [1]}))
    assert value[1:].split(",", 1)[0] in line


@pytest.mark.parametrize(
    "custom",
    [
        {"a": "${self:custom.a}"},
        {"a": "${self:custom.b}", "b": "${self:custom.a}"},
        {"a": "${self:custom}"},
        {"a": "x${self:custom.a}"},
    ],
)
def test_variables_in_a_circle_are_named(tmp_path: Path, custom: dict[str, Any]) -> None:
    """In one line."""
    (line,) = missing(service(tmp_path, "${self:custom.a}", custom=custom))
    assert "variables in a circle" in line


ZONES = {"Fn::GetAZs": ""}
INCLUDE = {"Fn::Transform": {"Name": "AWS::Include", "Parameters": {"Location": "part.json"}}}
LOOP = {"Fn::ForEach::Names": ["Name", ["a", "b"], {"key-${Name}": {"Fn::Sub": "v-${Name}"}}]}
MAPPINGS = {"M": {"dev": {"n": 2}}}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"Fn::Select": [0, ZONES]}, "us-east-1a"),
        ({"Fn::Select": [1, {"Fn::GetAZs": "eu-west-1"}]}, "eu-west-1b"),
        ({"Fn::FindInMap": ["M", "qa", "n", {"DefaultValue": 7}]}, 7),
        ({"Fn::FindInMap": ["M", "dev", "n", {"DefaultValue": {"Ref": "Nobody"}}]}, 2),
        ({"Fn::Cidr": ["10.0.0.0/16", 2, 8]}, ["10.0.0.0/24", "10.0.1.0/24"]),
        (INCLUDE, {"region": "us-east-1"}),
        (LOOP, {"key-a": "v-a", "key-b": "v-b"}),
        ({"a": 1, **LOOP}, {"a": 1, "key-a": "v-a", "key-b": "v-b"}),
        ({"Fn::Join": ["-", [True, 1, "x"]]}, "true-1-x"),
        ({"Fn::Sub": ["${a}", {"a": False}]}, "false"),
        ({"Fn::GetAtt": ["Settings", "Value"]}, "from the template"),
    ],
)
def test_functions_of_templates(tmp_path: Path, value: Any, expected: Any) -> None:
    """Zones, networks, loops, included files, defaults of tables."""
    settings = {"Type": "AWS::SSM::Parameter", "Properties": {"Value": "from the template"}}
    files = {"part.json": '{"region": {"Ref": "AWS::Region"}}'}
    folder = template(
        tmp_path, value, files=files, Mappings=MAPPINGS, resources={"Settings": settings}
    )
    assert value_of(read(folder)) == expected


STORED = {"S": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/my/ssm"}}
ASKED = {
    "S": {"Ref": "S"},
    "ssm:/x/y": "{{resolve:ssm:/x/y}}",
    "secretsmanager:db:SecretString:pw": "{{resolve:secretsmanager:db:SecretString:pw}}",
    "ssm:/dev/z": {"Fn::Sub": "{{resolve:ssm:/dev/z}}"},
    "ssm:/dev/j": {"Fn::Join": ["", ["{{resolve:ssm:/dev/", "j}}"]]},
    "X.A": {"Fn::GetAtt": ["X", "A"]},
    "Y.B": {"Fn::Sub": "${Y.B}"},
    "Y": {"Ref": "Y"},
    "M.qa.n": {"Fn::FindInMap": ["M", "qa", "n"]},
    "shared": {"Fn::ImportValue": "shared"},
    "Fn::Odd": {"Fn::Odd": [1]},
    "MyMacro": {"Fn::Transform": {"Name": "MyMacro"}},
    "s3://b/part.yaml": {
        "Fn::Transform": {"Name": "AWS::Include", "Parameters": {"Location": "s3://b/part.yaml"}}
    },
    "Stage": "${Stage}",
}


def test_one_run_names_all_that_only_aws_knows(tmp_path: Path) -> None:
    """References, attributes, parameters of Parameter Store, macros; then each gets its value."""
    folder = template(tmp_path, list(ASKED.values()), Parameters=STORED, Mappings=MAPPINGS)
    lines = missing(folder)
    assert [line.rpartition("--param ")[2] for line in lines] == [f"{n}=VALUE" for n in ASKED]
    assert "/my/ssm" not in "".join(lines)
    parameters = {name: f"value {number}" for number, name in enumerate(ASKED)}
    assert value_of(read(folder, **parameters)) == list(parameters.values())


def test_what_no_state_machine_needs_does_not_stop_a_template(tmp_path: Path) -> None:
    """Unknown functions, conditions and missing values of other resources."""
    other = {
        "Type": "AWS::EC2::VPC",
        "Condition": "Nowhere",
        "Properties": {"A": {"Fn::Odd": 1}, "B": {"Ref": "Nobody"}},
    }
    rule = {
        "Type": "AWS::Events::Rule",
        "Properties": {"EventPattern": {"Ref": "Nobody"}, "Targets": [{"Arn": {"Ref": "Queue"}}]},
    }
    folder = template(tmp_path, 1, resources={"Other": other, "Rule": rule})
    assert value_of(read(folder)) == 1


@pytest.mark.parametrize(
    ("value", "more"),
    [
        ({"Fn::If": ["C", 1, 2]}, {"Conditions": {"C": {"Fn::Not": [{"Condition": "C"}]}}}),
        (
            {"Ref": "T"},
            {
                "resources": {
                    "T": {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": {"Ref": "T"}}}
                }
            },
        ),
        (
            {"Fn::GetAtt": ["P", "Value"]},
            {
                "resources": {
                    "P": {
                        "Type": "AWS::SSM::Parameter",
                        "Properties": {"Value": {"Fn::GetAtt": ["P", "Value"]}},
                    }
                }
            },
        ),
    ],
)
def test_a_value_that_needs_itself_is_named(
    tmp_path: Path, value: Any, more: dict[str, Any]
) -> None:
    """A condition, a name, an attribute."""
    (line,) = missing(template(tmp_path, value, **more))
    assert "circle" in line or "nested too deep" in line


def test_parameters_have_the_types_of_the_template(tmp_path: Path) -> None:
    """Lists by comma or as JSON, numbers; what AllowedValues lacks is refused."""
    parameters = {
        "Zones": {"Type": "CommaDelimitedList"},
        "Size": {"Type": "Number"},
        "Name": {"Type": "String"},
        "Stage": {"Type": "String", "AllowedValues": ["dev", "qa"], "Default": "dev"},
    }
    value = [{"Ref": name} for name in parameters]
    folder = template(tmp_path, value, Parameters=parameters)
    values = value_of(read(folder, Zones="a, b", Size="3", Name="12", Stage="qa"))
    assert values == [["a", "b"], 3, "12", "qa"]
    assert value_of(read(folder, Zones='["c"]', Size="3", Name="12"))[0] == ["c"]
    with pytest.raises(SourceError, match="wanted a number"):
        read(folder, Zones="a", Size="three", Name="n")
    with pytest.raises(SourceError, match="wanted one of dev, qa"):
        read(folder, Zones="a", Size="3", Name="n", Stage="prod")


def test_placeholders_of_plain_definitions(tmp_path: Path) -> None:
    """JSON and YAML: texts are escaped, bare ones take JSON; the line is named."""
    (tmp_path / "a.asl.json").write_text(
        '{"StartAt": "P", "States": {"P": {"Type": "Pass",\n'
        ' "Result": {"v": ["${Text}", "${Version}", ${Bare}]}, "End": true}}}',
        "utf-8",
    )
    lines = missing(tmp_path)
    assert [line.rpartition(" ")[2] for line in lines] == [
        *("Text=VALUE", "Version=VALUE", "Bare=VALUE")
    ]
    assert all(line.startswith(f"{tmp_path}/a.asl.json: line 2: ${{") for line in lines)
    parameters = {"Text": 'say "hi"', "Version": "1.10", "Bare": "[1]"}
    assert value_of(read(tmp_path, **parameters)) == ['say "hi"', "1.10", [1]]
    (tmp_path / "a.asl.json").rename(tmp_path / "a.txt")
    (tmp_path / "b.asl.yaml").write_text(
        "StartAt: P\nStates:\n  P: {Type: Pass, End: true}\n", "utf-8"
    )
    text = "StartAt: P\nStates:\n  P:\n    Type: Pass\n    End: true\n    Result:\n      v:\n"
    text += "        - ${Text}\n        - '${Version}'\n        - ${Bare}\n        - ${Size}\n"
    (tmp_path / "b.asl.yaml").write_text(text, "utf-8")
    parameters |= {"Text": "a: b # c", "Size": "5"}
    assert value_of(read(tmp_path, **parameters)) == ["a: b # c", "1.10", [1], 5]


def test_substitutions_of_sam_are_texts_of_json(tmp_path: Path) -> None:
    """A boolean is ``true``, quotes are escaped; a marker without a substitution is asked for."""
    machine = {
        "Type": "AWS::Serverless::StateMachine",
        "Properties": {
            "DefinitionUri": "m.asl.json",
            "DefinitionSubstitutions": {"Flag": True, "Text": 'a "b"', "Number": 3},
        },
    }
    body = {"Resources": {"M": machine}}
    (tmp_path / "template.json").write_text(json.dumps(body), "utf-8")
    text = json.dumps(definition(["${Flag}", "${Text}", "BARE", "${Other}"]))
    (tmp_path / "m.asl.json").write_text(text.replace('"BARE"', "${Number}"), "utf-8")
    (line,) = missing(tmp_path / "template.json")
    assert line.endswith("m.asl.json: line 1: ${Other}: got no value, wanted --param Other=VALUE")
    value = value_of(read(tmp_path / "template.json", Other="o"))
    assert value == ["true", 'a "b"', 3, "o"]


def test_a_name_that_no_file_has_is_refused(tmp_path: Path) -> None:
    """A mistyped option is not dropped; one that only a fallback names is none."""
    folder = service(tmp_path, "${self:custom.x, ${opt:other}}", custom={"x": 1})
    assert value_of(read(folder, other="2")) == 1
    with pytest.raises(SourceError, match="--param sage: got a value that no file asks for"):
        read(folder, sage="2")


def test_the_last_of_two_equal_keys_counts_with_a_warning(tmp_path: Path) -> None:
    """As in SAM; the line is that of the second."""
    text = yaml.safe_dump(definition(1)) + "StartAt: P\nComment: a\nComment: b\n"
    (tmp_path / "m.asl.yaml").write_text(text, "utf-8")
    assert json.loads(read(tmp_path).machines[0].definition)["Comment"] == "b"
    assert [line.partition("m.asl.yaml: ")[2] for line in WARNINGS] == [
        "line 8: the key 'StartAt' stands twice; the last one counts",
        "line 10: the key 'Comment' stands twice; the last one counts",
    ]


@pytest.mark.parametrize(
    ("place", "key"),
    [("Properties", "DefinitionURI"), ("machine", "definitions"), ("event", "inputs")],
)
def test_unknown_keys_are_named(tmp_path: Path, place: str, key: str) -> None:
    """A property of a template, a key of a state machine or an event of Serverless."""
    if place == "Properties":
        folder = template(tmp_path, 1)
        path = folder / "template.yaml"
        body = yaml.safe_load(path.read_text("utf-8"))
        body["Resources"]["M"]["Properties"][key] = "x"
    else:
        folder = service(tmp_path, 1)
        path = folder / "serverless.yml"
        body = yaml.safe_load(path.read_text("utf-8"))
        said = body["stepFunctions"]["stateMachines"]["m"]
        event = {"schedule": {"rate": "rate(1 day)", key: 1}}
        said |= {"events": [event]} if place == "event" else {key: 1}
    path.write_text(yaml.safe_dump(body), "utf-8")
    (line,) = missing(folder)
    assert key in line
    assert "unknown" in line
