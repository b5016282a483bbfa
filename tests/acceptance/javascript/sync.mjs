// Goes behind the README's lines, which make ``sfn``: start, start and wait, and try a state.
import { CreateStateMachineCommand, StartExecutionCommand, StartSyncExecutionCommand,
  TestStateCommand } from "@aws-sdk/client-sfn";

const state = { Type: "Pass", End: true };
const definition = JSON.stringify({ StartAt: "P", States: { P: state } });
const roleArn = "arn:aws:iam::123456789012:role/any";
const make = async (name, type) => (await sfn.send(
  new CreateStateMachineCommand({ name, definition, roleArn, type }))).stateMachineArn;
const standard = await make("standard-from-javascript", "STANDARD");
const started = await sfn.send(new StartExecutionCommand({ stateMachineArn: standard }));
const waited = await sfn.send(new StartSyncExecutionCommand(
  { stateMachineArn: await make("express-from-javascript", "EXPRESS"), input: "[4711]" }));
const tried = await sfn.send(new TestStateCommand(
  { definition: JSON.stringify(state), input: "[4712]" }));
console.log(JSON.stringify(
  { started: Boolean(started.executionArn), waited: waited.output, tried: tried.output }));
