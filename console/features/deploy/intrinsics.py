"""Evaluate CloudFormation's intrinsic functions (``Fn::Sub``, ``Ref``) without a deployed stack.

A resource gets its configured name, else its logical id, and the ARN with that name. Values that
only AWS knows (an attribute of a resource, an imported value, a dynamic reference) come from
``--param NAME=VALUE``, also as ``--param LogicalId.Attribute=VALUE``.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from console.cli.documents import (
    MOST_CHARACTERS,
    SourceError,
    as_list,
    as_object,
    kind_of,
    load_document,
)
from console.features.deploy.intrinsic_functions import (
    count_values,
    encode_base64,
    fill_loop,
    find_member,
    is_equal,
    list_networks,
    list_zones,
    not_among,
    select_value,
    split_list,
    split_text,
    typed_value,
)
from console.features.deploy.parameters import text_of
from console.features.deploy.placeholders import REFERENCE, reference_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from console.cli.account import Account
    from console.features.deploy.parameters import Parameters

MOST_CALLS = 100_000
"""The maximum number of evaluations: a few functions that use each other twice cause millions."""
_SUB = re.compile(r"\$\{(!?)([^}]+)\}")
RESOURCE_ARNS = {
    "AWS::Lambda::Function": ("lambda", "function:{}", "FunctionName"),
    "AWS::Serverless::Function": ("lambda", "function:{}", "FunctionName"),
    "AWS::DynamoDB::Table": ("dynamodb", "table/{}", "TableName"),
    "AWS::DynamoDB::GlobalTable": ("dynamodb", "table/{}", "TableName"),
    "AWS::Serverless::SimpleTable": ("dynamodb", "table/{}", "TableName"),
    "AWS::SQS::Queue": ("sqs", "{}", "QueueName"),
    "AWS::SNS::Topic": ("sns", "{}", "TopicName"),
    "AWS::StepFunctions::StateMachine": ("states", "stateMachine:{}", "StateMachineName"),
    "AWS::Serverless::StateMachine": ("states", "stateMachine:{}", "Name"),
    "AWS::StepFunctions::Activity": ("states", "activity:{}", "Name"),
    "AWS::Events::EventBus": ("events", "event-bus/{}", "Name"),
    "AWS::Events::Rule": ("events", "rule/{}", "Name"),
    "AWS::Logs::LogGroup": ("logs", "log-group:{}:*", "LogGroupName"),
    "AWS::ECS::Cluster": ("ecs", "cluster/{}", "ClusterName"),
    "AWS::ECS::TaskDefinition": ("ecs", "task-definition/{}:1", "Family"),
    "AWS::Batch::JobQueue": ("batch", "job-queue/{}", "JobQueueName"),
    "AWS::Batch::JobDefinition": ("batch", "job-definition/{}:1", "JobDefinitionName"),
    "AWS::KMS::Key": ("kms", "key/{}", ""),
    "AWS::SecretsManager::Secret": ("secretsmanager", "secret:{}", "Name"),
    "AWS::Kinesis::Stream": ("kinesis", "stream/{}", "Name"),
    "AWS::KinesisFirehose::DeliveryStream": (
        *("firehose", "deliverystream/{}"),
        "DeliveryStreamName",
    ),
    "AWS::CodeBuild::Project": ("codebuild", "project/{}", "Name"),
    "AWS::SSM::Parameter": ("ssm", "parameter/{}", "Name"),
    "AWS::ECR::Repository": ("ecr", "repository/{}", "RepositoryName"),
}
"""Type -> service and resource of its ARN, and the property that names it."""
RESOURCE_NAMES = {
    "AWS::S3::Bucket": "BucketName",
    "AWS::IAM::Role": "RoleName",
    "AWS::Glue::Job": "Name",
    "AWS::Glue::Crawler": "Name",
    "AWS::Athena::WorkGroup": "Name",
    "AWS::Scheduler::Schedule": "Name",
    "AWS::Scheduler::ScheduleGroup": "Name",
}
"""Other types that ``Ref`` names, and the property with the name."""
REF_IS_ARN = {
    "AWS::SNS::Topic",
    "AWS::StepFunctions::StateMachine",
    "AWS::Serverless::StateMachine",
    "AWS::StepFunctions::Activity",
    "AWS::ECS::TaskDefinition",
    "AWS::Batch::JobQueue",
    "AWS::Batch::JobDefinition",
    "AWS::SecretsManager::Secret",
    "AWS::Lambda::Version",
    "AWS::Lambda::Alias",
}
FUNCTION_PARTS = ("AWS::Lambda::Version", "AWS::Lambda::Alias")
NAME_ATTRIBUTES = ("Name", "QueueName", "TopicName", "FunctionName")
ARN_ATTRIBUTES = ("Arn", "TopicArn", "StateMachineArn")


class Template:
    """A template with its parameters' values; ``resolve`` evaluates a value."""

    def __init__(
        self,
        body: Any,
        place: str,
        account: Account,
        parameters: Parameters,
        *,
        folder: Path | None = None,
        arguments: Mapping[str, Callable[[], Any]] | None = None,
        exports: Mapping[str, Callable[[], Any]] | None = None,
        prefix: str = "",
    ) -> None:
        """``folder``: the folder of included files, None without any.

        ``arguments``: the parameters that a parent stack gives; ``exports``: the exports of other
        stacks; ``prefix``: precedes the names of resources in a nested stack.
        """
        self.prefix = prefix
        self.body = as_object(body, place)
        self._place = place
        self._account = account
        self._parameters = parameters
        self._folder = folder
        self._arguments = arguments or {}
        self.exports = {} if exports is None else exports
        self._sections: dict[str, dict[str, Any]] = {}
        self._trail: list[str] = []
        self._resolving: list[str] = []
        self._characters = self._calls = 0
        self.load_nested: Callable[[str, dict[str, Any]], Template | None] = lambda *_: None
        self._functions: dict[str, Callable[[Any], Any]] = {
            "Ref": self._ref,
            "Fn::GetAtt": self._get_att,
            "Fn::Sub": self._sub,
            "Fn::Join": lambda words: self._join(*self._resolved(words)),
            "Fn::Select": lambda words: select_value(*self._resolved(words)),
            "Fn::Split": lambda words: split_text(*self._resolved(words)),
            "Fn::Base64": lambda text: encode_base64(self._resolved(text)),
            "Fn::ToJsonString": lambda value: json.dumps(self._resolved(value), ensure_ascii=False),
            "Fn::Length": lambda value: count_values(self._resolved(value)),
            "Fn::GetAZs": lambda region: list_zones(self._resolved(region) or account.region),
            "Fn::Cidr": lambda words: list_networks(*self._resolved(words)),
            "Fn::ImportValue": lambda name: self._import(self._resolved(name)),
            "Fn::FindInMap": self._find_in_map,
            "Fn::Transform": lambda said: self._resolved(self._included_file(said)),
            "Fn::If": self._if,
            "Fn::Equals": lambda words: is_equal(*(self._resolved(value) for value in words)),
            "Fn::Not": lambda words: not self._resolved(words[0]),
            "Fn::And": lambda words: all(self._resolved(list(words))),
            "Fn::Or": lambda words: any(self._resolved(list(words))),
            "Condition": self.holds,
        }

    def section(self, name: str) -> dict[str, Any]:
        """Return a section by its keys, with its loops and included files expanded."""
        if name not in self._sections:
            declared = as_object(self.body.get(name), f"{self._place}: {name}")
            self._sections[name] = {}  # which a loop over itself finds
            self._sections[name] = self.expanded(declared)
        return self._sections[name]

    def resource(self, logical_id: str) -> dict[str, Any] | None:
        """Return a resource by logical id, None without one."""
        resources = self.section("Resources")
        if not isinstance(logical_id, str) or logical_id not in resources:
            return None
        return as_object(resources[logical_id], f"{self._place}: {logical_id}")

    def properties(self, logical_id: str) -> dict[str, Any]:
        """Return the unresolved properties of a resource."""
        resource = self.resource(logical_id) or {}
        return as_object(resource.get("Properties"), f"{self._place}: {logical_id}.Properties")

    def holds(self, name: Any) -> bool:
        """Return whether a condition holds; None: there is no condition."""
        if name is None:
            return True
        conditions = self.section("Conditions")
        if not isinstance(name, str) or name not in conditions:
            raise self._error(f"Condition {name}", "none of that name", "one of the Conditions")
        return bool(
            self._evaluate_once(f"Condition {name}", lambda: self._resolved(conditions[name]))
        )

    def resolve(self, value: Any, *at: str) -> Any:
        """Return a value with its functions evaluated; raise ``SourceError``.

        ``at``: its place, for messages. A missing ``--param`` value is noted. ``AWS::NoValue``
        gives None, as a missing property does.
        """
        self._trail += at
        try:
            resolved = self._resolved(value)
            return None if resolved is _NO_VALUE else resolved
        finally:
            del self._trail[len(self._trail) - len(at) :]

    def place(self, *at: str) -> str:
        """Return the place of a value for messages: the file and the path in it."""
        way = ".".join([*self._trail, *at]).replace(".[", "[")
        return f"{self._place}: {way}" if way else self._place

    def physical_name(self, logical_id: str) -> str:
        """Return the name of a resource: its configured name, else its logical path."""
        resource = self.resource(logical_id) or {}
        kind = resource.get("Type", "")
        key = RESOURCE_ARNS[kind][2] if kind in RESOURCE_ARNS else RESOURCE_NAMES.get(kind, "")
        declared_name = self.properties(logical_id).get(key)
        if declared_name is not None:
            name = self._evaluate_once(
                f"Ref {logical_id}", lambda: self.resolve(declared_name, logical_id, key)
            )
            if name is not None:
                try:
                    return text_of(name)
                except ValueError as error:
                    raise SourceError(f"{self.place(logical_id, key)}: {error}") from None
        path = str((resource.get("Metadata") or {}).get("aws:cdk:path", ""))
        return "-".join(path.split("/")[1:-1]) or f"{self.prefix}{logical_id}"

    def arn_of(self, logical_id: str) -> str | None:
        """Return the ARN of a resource, None for a type whose ARN is not known."""
        kind = (self.resource(logical_id) or {}).get("Type", "")
        if kind in FUNCTION_PARTS:
            return self._arn_of_function_part(logical_id, kind)
        if kind == "AWS::S3::Bucket":
            return f"arn:{self._account.partition}:s3:::{self.physical_name(logical_id)}"
        if kind == "AWS::IAM::Role":
            return self._account.role(self.physical_name(logical_id))
        if kind not in RESOURCE_ARNS:
            return None
        service, form, _ = RESOURCE_ARNS[kind]
        return self._account.arn(service, form.format(self.physical_name(logical_id)))

    def output(self, name: str) -> Any:
        """Return the value of an output; raise ``SourceError`` if it does not exist."""
        outputs = self.section("Outputs")
        if name not in outputs:
            raise SourceError(f"{self._place}: Outputs: got no {name}, wanted one")
        declaration = as_object(outputs[name], f"{self._place}: Outputs.{name}")
        return self._evaluate_once(
            f"Outputs.{name}", lambda: self.resolve(declaration.get("Value"), "Outputs", name)
        )

    # -- evaluating --------------------------------------------------------------------------------

    def _resolved(self, value: Any) -> Any:
        if isinstance(value, list):
            parts = [self._inside(f"[{number}]", part) for number, part in enumerate(value)]
            return [part for part in parts if part is not _NO_VALUE]
        if isinstance(value, str):
            filled = self.fill_variables(value)
            return self.fill_text(filled) if isinstance(filled, str) else self._resolved(filled)
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            ((name, argument),) = value.items()
            conditions = self.body.get("Conditions") or {}
            of_template = name != "Condition" or (
                isinstance(argument, str) and argument in conditions
            )
            if name in self._functions and of_template:
                return self._call(name, argument)
            if isinstance(name, str) and name.startswith("Fn::") and not name.startswith(_LOOP):
                return self._ask(name, name, got="a function that is not evaluated here")
        value = self.expanded(value)
        values = {name: self._inside(name, part) for name, part in value.items()}
        return {name: part for name, part in values.items() if part is not _NO_VALUE}

    def fill_text(self, text: str) -> Any:
        """Return a text of the template with its dynamic references replaced."""
        if "{{resolve:" not in text:
            return text
        reference = REFERENCE.fullmatch(text)
        if reference:
            return self._ask(reference[0], *reference_names(reference[1]))
        return REFERENCE.sub(
            lambda match: self._ask_text(match[0], *reference_names(match[1])), text
        )

    def fill_variables(self, text: str) -> Any:
        """Return a text with another tool's variables replaced: here unchanged."""
        return text

    def _inside(self, key: Any, value: Any) -> Any:
        self._trail.append(str(key))
        try:
            return self._resolved(value)
        finally:
            self._trail.pop()

    def _call(self, name: str, argument: Any) -> Any:
        before = self._parameters.stand_ins
        try:
            self._count_call(name)
            result = self._functions[name](argument)
            is_text = not isinstance(result, list | dict)  # one from a mapping may be named often
            size = len(str(result) if is_text else json.dumps(result, default=str))
            self._count_characters(name, size)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            if self._parameters.stand_ins > before:  # a missing value has no type to check
                return self._parameters.last_stand_in
            argument_text = json.dumps(argument, default=str)[:80]
            raise self._error(name, argument_text, f"arguments that fit ({error})") from None
        return result

    def _evaluate_once(self, name: str, evaluate: Callable[[], Any]) -> Any:
        """Evaluate a named thing; raise ``SourceError`` for a circular reference."""
        if name in self._resolving:
            raise self._error(name, "a circle", "a value that does not need itself")
        self._resolving.append(name)
        try:
            return evaluate()
        finally:
            self._resolving.pop()

    def _count_characters(self, name: str, count: int) -> None:
        """Raise ``SourceError`` before a small template makes a text of gigabytes."""
        self._characters += count
        if self._characters > MOST_CHARACTERS:
            raise self._error(name, "a text that grows", f"at most {MOST_CHARACTERS} characters")

    def _count_call(self, name: str) -> None:
        """Raise ``SourceError`` before a small template takes hours."""
        self._calls += 1
        if self._calls > MOST_CALLS:
            raise self._error(name, "too much to evaluate", f"at most {MOST_CALLS} functions")

    def _ask(self, marker: str, *names: str, got: str = "no value") -> Any:
        """Return the ``--param`` value of something that only AWS knows."""
        return self._parameters.ask(self.place(), marker, *names, got=got)

    def _ask_text(self, marker: str, *names: str) -> str:
        value = self._ask(marker, *names)
        written = self._parameters.text(*names)
        return written if isinstance(value, list | dict) and written else text_of(value)

    def _error(self, where: str, got: str, expected: str) -> SourceError:
        return SourceError(
            " ".join(f"{self.place()}: {where}: got {got}, wanted {expected}".split())
        )

    # -- references --------------------------------------------------------------------------------

    def _ref(self, name: Any) -> Any:
        name = self.fill_variables(name) if isinstance(name, str) else name
        if not isinstance(name, str):
            raise TypeError("the name of a parameter or a resource")
        if name in self._arguments:
            return self._evaluate_once(f"Ref {name}", self._arguments[name])
        parameters = self.section("Parameters")
        if name in parameters:
            return self._parameter(name, as_object(parameters[name], self.place("Parameters")))
        value = self._parameters.value(name)
        if value is not None:
            return value
        if name == "AWS::NoValue":
            return _NO_VALUE
        if name in (pseudo := self._account.pseudo_parameters):
            return pseudo[name]
        resource = self.resource(name)
        if resource is not None:
            return self._ref_to_resource(name, resource.get("Type", ""))
        function, _, part = name.rpartition(".")
        if part in ("Alias", "Version") and self.resource(function) is not None:
            return self._ref_to_published(function, part)
        return self._ask(f"Ref {name}", name)

    def _parameter(self, name: str, declaration: dict[str, Any]) -> Any:
        """Return the value of a parameter: its ``--param``, else its default."""
        kind = str(declaration.get("Type", "String"))
        written = self._parameters.text(name)
        if written is not None:
            value = typed_value(kind, written)
            if value is None:
                raise self._error(f"--param {name}", repr(written), "a number")
        elif kind.startswith(_STORED):
            return self._ask(f"Ref {name}", name, got="no value, only its name in Parameter Store")
        elif "Default" not in declaration:
            return self._ask(f"Ref {name}", name)
        else:
            default = declaration["Default"]
            is_list = "List" in kind and not isinstance(default, list)
            value = split_list(str(default)) if is_list else self._resolved(default)
        allowed = declaration.get("AllowedValues")
        if written is not None and isinstance(allowed, list) and (odd := not_among(value, allowed)):
            raise self._error(f"--param {name}", odd, f"one of {', '.join(map(str, allowed))}")
        return value

    def _ref_to_resource(self, name: str, kind: str) -> Any:
        if kind == "AWS::SQS::Queue":
            return self._account.queue_url(self.physical_name(name))
        if kind in REF_IS_ARN:
            return self.arn_of(name) or self._ask(f"Ref {name}", name)
        if kind in RESOURCE_ARNS or kind in RESOURCE_NAMES:
            return self.physical_name(name)
        return self._ask(f"Ref {name}", name, got=f"what only AWS knows of an {kind}")

    def _ref_to_published(self, function: str, part: str) -> str:
        """Return the ARN of a function's version or alias that SAM publishes."""
        alias = self.properties(function).get("AutoPublishAlias", "live")
        qualifier = "1" if part == "Version" else text_of(self._resolved(alias))
        return f"{self.arn_of(function)}:{qualifier}"

    def _arn_of_function_part(self, logical_id: str, kind: str) -> str:
        """Return the ARN of a version or an alias of a function."""
        properties = self.properties(logical_id)
        key = f"Ref {logical_id}"
        name = self._evaluate_once(
            key, lambda: text_of(self.resolve(properties.get("FunctionName"), logical_id))
        )
        arn = name if name.startswith("arn:") else self._account.arn("lambda", f"function:{name}")
        if kind == "AWS::Lambda::Version":
            return f"{arn}:1"
        return f"{arn}:{text_of(self.resolve(properties.get('Name'), logical_id))}"

    def _get_att(self, argument: Any) -> Any:
        words = self._resolved(argument)
        name, attribute = words.split(".", 1) if isinstance(words, str) else map(text_of, words)
        key = f"{name}.{attribute}"
        value = self._parameters.value(key)
        if value is not None:
            return value
        resource = self.resource(name)
        attribute_value = None if resource is None else self._attribute(name, resource, attribute)
        return self._ask(f"Fn::GetAtt {key}", key) if attribute_value is None else attribute_value

    def _attribute(self, name: str, resource: dict[str, Any], attribute: str) -> Any:
        """Return an attribute of a resource, None if only AWS knows it."""
        kind = resource.get("Type", "")
        if attribute.startswith("Outputs."):
            nested = self.load_nested(name, resource)
            return None if nested is None else nested.output(attribute.removeprefix("Outputs."))
        if kind == "AWS::SSM::Parameter" and attribute == "Value":
            return self.resolve(self.properties(name).get("Value"), name, "Value")
        if attribute in NAME_ATTRIBUTES and (kind in RESOURCE_ARNS or kind in RESOURCE_NAMES):
            return self.physical_name(name)
        if attribute == "QueueUrl" and kind == "AWS::SQS::Queue":
            return self._account.queue_url(self.physical_name(name))
        return self.arn_of(name) if attribute in ARN_ATTRIBUTES else None

    def _import(self, name: Any) -> Any:
        name = text_of(name)
        if self._parameters.text(name) is None and name in self.exports:
            return self.exports[name]()
        return self._ask(f"Fn::ImportValue {name}", name)

    # -- texts and tables --------------------------------------------------------------------------

    def _sub(self, argument: Any) -> Any:
        text, own = argument if isinstance(argument, list) else (argument, {})
        if not isinstance(text, str):
            raise TypeError(f"a text, not {kind_of(text)}")
        text = text_of(self.fill_variables(text))
        values = {name: self._resolved(value) for name, value in own.items()}

        def value_of(match: re.Match[str]) -> str:
            name = match[2].strip()
            if match[1]:
                return f"${{{name}}}"
            self._count_call("Fn::Sub")
            value = text_of(values[name] if name in values else self._value_in_text(name))
            self._count_characters("Fn::Sub", len(value))
            return value

        return self.fill_text(_SUB.sub(value_of, text))

    def _value_in_text(self, name: str) -> Any:
        if "." not in name or name.rpartition(".")[2] in ("Alias", "Version"):
            return self._ref(name)
        return self._get_att(name)

    def _join(self, delimiter: Any, values: Any) -> Any:
        if not isinstance(values, list):
            raise TypeError(f"a list, not {kind_of(values)}")
        separator, parts = text_of(delimiter), [text_of(part) for part in values]
        self._count_characters("Fn::Join", len(separator) * len(parts))
        return self.fill_text(separator.join(parts))

    def _find_in_map(self, words: list[Any]) -> Any:
        table, first, second = (text_of(self._resolved(word)) for word in words[:3])
        rows = as_object(self.section("Mappings").get(table), self.place(table))
        entry = find_member(find_member(rows, first), second)
        if entry is not None:
            return self._resolved(entry)
        if len(words) > 3:  # noqa: PLR2004 - map, two keys, options
            return self._resolved(words[3]["DefaultValue"])
        key = f"{table}.{first}.{second}"
        return self._ask(f"Fn::FindInMap {key}", key, got="no such entry")

    # -- loops, included files, conditions ---------------------------------------------------------

    def expanded(self, section: dict[str, Any]) -> dict[str, Any]:
        """Return an object with the members added by ``Fn::ForEach`` and ``Fn::Transform``."""
        if not any(str(key).startswith((_LOOP, "Fn::Transform")) for key in section):
            return section
        members: dict[str, Any] = {}
        for key, part in section.items():
            if str(key).startswith(_LOOP):
                members |= self._loop(key, part)
            elif key == "Fn::Transform":
                content = self._included_file(part)
                members |= content if isinstance(content, dict) else {}
            else:
                members[key] = part
        return members

    def _loop(self, key: str, arguments: Any) -> dict[str, Any]:
        identifier, collection, fragment = as_list(arguments, self.place(key))
        before = self._parameters.stand_ins
        items = self._resolved(collection)
        if self._parameters.stand_ins > before and not isinstance(items, list):
            return {}  # missing, and noted
        if not isinstance(items, list) or not isinstance(fragment, dict):
            raise self._error(key, kind_of(items), "a name, a list and an object")
        members: dict[str, Any] = {}
        for item in items:
            self._count_call(key)
            self._count_characters(key, len(json.dumps(fragment, default=str)))
            members |= self.expanded(fill_loop(fragment, str(identifier), text_of(item)))
        return members

    def _included_file(self, transform: Any) -> Any:
        """Return the file that ``AWS::Include`` names; other macros only AWS can run."""
        about = as_object(transform, self.place("Fn::Transform"))
        name = str(about.get("Name"))
        if name != "AWS::Include":
            return self._ask(f"Fn::Transform {name}", name, got="a macro, which only AWS can run")
        location = self._resolved((about.get("Parameters") or {}).get("Location"))
        if not isinstance(location, str):
            raise self._error("AWS::Include", kind_of(location), "the Location of a file")
        path = self._folder / location if self._folder and "://" not in location else None
        if path is not None and path.is_file():
            self._count_call("Fn::Transform")
            return load_document(path)
        return self._ask(f"Fn::Transform {location}", location, got="no such file")

    def _if(self, words: Any) -> Any:
        condition, yes, no = words
        return self._resolved(yes if self.holds(condition) else no)


_STORED = "AWS::SSM::Parameter::Value<"
_LOOP = "Fn::ForEach::"
_NO_VALUE = object()
