"""A distributed Map reads its items from buckets, and writes its results to them."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyarrow import parquet

from tests.acceptance.integrations.runs import create_machine, output_of
from tests.acceptance.server import wait_for_end

if TYPE_CHECKING:
    from tests.acceptance.aws import Moto

pytestmark = pytest.mark.acceptance


def mapped(sfn: Any, reader: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Run a distributed Map over what a reader reads; return how it ended."""
    config = {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    child = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
    processor = {"ProcessorConfig": config, **child}
    part = {"Resource": "arn:aws:states:::s3:getObject", **reader}
    arn = create_machine(sfn, Type="Map", ItemReader=part, ItemProcessor=processor, **more)
    return wait_for_end(sfn, sfn.start_execution(stateMachineArn=arn)["executionArn"])


def test_a_map_reads_its_items_from_a_bucket(sfn: Any, aws: Moto) -> None:
    """CSV, JSON Lines and listings; selected and batched by the engine."""
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="items")
    s3.put_object(Bucket="items", Key="a.csv", Body=b"n,s\n1,x\n2,y\n3,z\n")
    s3.put_object(Bucket="items", Key="b.jsonl", Body=b'{"n": 1}\n{"n": 2}\n')
    place = {"Parameters": {"Bucket": "items", "Key": "a.csv"}}
    config = {"InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW"}
    output = output_of(mapped(sfn, {**place, "ReaderConfig": config}))
    assert output == [{"n": "1", "s": "x"}, {"n": "2", "s": "y"}, {"n": "3", "s": "z"}]
    selector = {"at.$": "$$.Map.Item.Index", "s.$": "$$.Map.Item.Value.s"}
    batches = {"ItemSelector": selector, "ItemBatcher": {"MaxItemsPerBatch": 2}}
    output = output_of(mapped(sfn, {**place, "ReaderConfig": {**config, "MaxItems": 3}}, **batches))
    assert output[0] == {"Items": [{"at": 0, "s": "x"}, {"at": 1, "s": "y"}]}
    lines = {"Parameters": {"Bucket": "items", "Key": "b.jsonl"}}
    output = output_of(mapped(sfn, {**lines, "ReaderConfig": {"InputType": "JSONL"}}))
    assert output == [{"n": 1}, {"n": 2}]
    listing = {"Resource": "arn:aws:states:::s3:listObjectsV2", "Parameters": {"Bucket": "items"}}
    assert [item["Key"] for item in output_of(mapped(sfn, listing))] == ["a.csv", "b.jsonl"]
    flat = {"InputType": "JSONL", "Transformation": "LOAD_AND_FLATTEN"}
    only = {**listing, "Parameters": {"Bucket": "items", "Prefix": "b"}, "ReaderConfig": flat}
    assert output_of(mapped(sfn, only)) == [{"n": 1}, {"n": 2}]


def test_a_map_reads_parquet_and_what_athena_unloaded(sfn: Any, aws: Moto) -> None:
    """A Parquet file's rows, and those of the files that a manifest of Athena names."""
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="lake")
    for number in (1, 2):
        file = io.BytesIO()
        parquet.write_table(pa.table({"n": [number], "s": [f"row {number}"]}), file)
        s3.put_object(Bucket="lake", Key=f"out/part {number}?", Body=file.getvalue())
    names = "".join(f"s3://lake/out/part {number}?\n" for number in (1, 2))
    s3.put_object(Bucket="lake", Key="out/q-manifest.csv", Body=names.encode())
    rows = [{"n": 1, "s": "row 1"}, {"n": 2, "s": "row 2"}]
    location = {"Parameters": {"Bucket": "lake", "Key": "out/part 1?"}}
    assert (
        output_of(mapped(sfn, {**location, "ReaderConfig": {"InputType": "PARQUET"}})) == rows[:1]
    )
    unloaded = {"Parameters": {"Bucket": "lake", "Key": "out/q-manifest.csv"}}
    config = {"InputType": "PARQUET", "ManifestType": "ATHENA_DATA"}
    assert output_of(mapped(sfn, {**unloaded, "ReaderConfig": config})) == rows
    selector = {"n.$": "$$.Map.Item.Value.n", "from.$": "$$.Map.Item.Source"}
    output = output_of(mapped(sfn, {**unloaded, "ReaderConfig": config}, ItemSelector=selector))
    assert output[1] == {"n": 2, "from": "S3://lake/out/part 2?"}


def test_the_members_of_an_object_are_items(sfn: Any, aws: Moto) -> None:
    """A child gets key and value; the context object has them apart."""
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="objects")
    s3.put_object(Bucket="objects", Key="in.json", Body=b'{"a": {"x": 1}, "b": 2}')
    reader = {
        "Parameters": {"Bucket": "objects", "Key": "in.json"},
        "ReaderConfig": {"InputType": "JSON"},
    }
    pairs = [{"Key": "a", "Value": {"x": 1}}, {"Key": "b", "Value": 2}]
    assert output_of(mapped(sfn, reader)) == pairs
    selector = {
        "key.$": "$$.Map.Item.Key",
        "value.$": "$$.Map.Item.Value",
        "at.$": "$$.Map.Item.Index",
    }
    assert output_of(mapped(sfn, reader, ItemSelector=selector)) == [
        {"key": "a", "value": {"x": 1}, "at": 0},
        {"key": "b", "value": 2, "at": 1},
    ]


def test_what_cannot_be_read_fails_the_map(sfn: Any, aws: Moto) -> None:
    """The Map fails with States.ItemReaderFailed, which a Catch can take."""
    del aws
    missing = {"Parameters": {"Bucket": "nobody", "Key": "k"}, "ReaderConfig": {}}
    ended = mapped(sfn, missing)
    assert ended["error"] == "States.ItemReaderFailed"
    assert "NoSuchBucket" in ended["cause"]


def test_a_map_writes_its_results_to_a_bucket(sfn: Any, aws: Moto) -> None:
    """The state yields where the manifest is; the manifest names the files."""
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="results")
    s3.put_object(Bucket="results", Key="in.json", Body=b"[1, 2]")
    reader = {"Parameters": {"Bucket": "results", "Key": "in.json"}}
    writer = {
        "Resource": "arn:aws:states:::s3:putObject",
        "Parameters": {"Bucket": "results", "Prefix": "out"},
    }
    output = output_of(
        mapped(sfn, {**reader, "ReaderConfig": {"InputType": "JSON"}}, ResultWriter=writer)
    )
    place = output["ResultWriterDetails"]
    assert place["Key"].startswith("out/")
    manifest = json.loads(s3.get_object(**place)["Body"].read())
    (file,) = manifest["ResultFiles"]["SUCCEEDED"]
    records = json.loads(s3.get_object(Bucket="results", Key=file["Key"])["Body"].read())
    assert [(record["Status"], record["Output"]) for record in records] == [
        ("SUCCEEDED", "1"),
        ("SUCCEEDED", "2"),
    ]


def test_a_map_flattens_its_own_result(sfn: Any, aws: Moto) -> None:
    """Without a bucket the writer's configuration shapes what the state yields."""
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="nested")
    s3.put_object(Bucket="nested", Key="in.json", Body=b"[[1, [2]], [], 3]")
    reader = {"Parameters": {"Bucket": "nested", "Key": "in.json"}}
    writer = {"WriterConfig": {"Transformation": "FLATTEN", "OutputType": "JSON"}}
    ended = mapped(sfn, {**reader, "ReaderConfig": {"InputType": "JSON"}}, ResultWriter=writer)
    assert output_of(ended) == [1, [2], 3]


def test_a_map_yields_all_that_is_known_of_its_children(sfn: Any, aws: Moto) -> None:
    """Transformation NONE without a bucket: the descriptions that a file would have."""
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="known")
    s3.put_object(Bucket="known", Key="in.json", Body=b"[7]")
    reader = {"Parameters": {"Bucket": "known", "Key": "in.json"}}
    writer = {"WriterConfig": {"Transformation": "NONE", "OutputType": "JSON"}}
    ended = mapped(sfn, {**reader, "ReaderConfig": {"InputType": "JSON"}}, ResultWriter=writer)
    (child,) = output_of(ended)
    described = sfn.describe_execution(executionArn=child["ExecutionArn"])
    assert child == {
        "ExecutionArn": described["executionArn"],
        "Input": "7",
        "InputDetails": {"Included": True},
        "Name": described["name"],
        "Output": "7",
        "OutputDetails": {"Included": True},
        "RedriveCount": 0,
        "RedriveStatus": "NOT_REDRIVABLE",
        "RedriveStatusReason": "Execution is SUCCEEDED and cannot be redriven",
        "StartDate": child["StartDate"],
        "StateMachineArn": described["stateMachineArn"],
        "Status": "SUCCEEDED",
        "StopDate": child["StopDate"],
    }
