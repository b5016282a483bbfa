// Create a state machine, start it, wait for its end and print what the SDK understood.
import { SFNClient, CreateStateMachineCommand, StartExecutionCommand, DescribeExecutionCommand,
  GetExecutionHistoryCommand } from "@aws-sdk/client-sfn";

const [endpoint] = process.argv.slice(2);
const sfn = new SFNClient({ endpoint, region: "us-east-1", maxAttempts: 1, disableHostPrefix: true });
const definition = JSON.stringify({ StartAt: "P", States: { P: { Type: "Pass", End: true } } });
const machine = await sfn.send(new CreateStateMachineCommand({
  name: "from-javascript", definition, roleArn: "arn:aws:iam::123456789012:role/any" }));
const started = await sfn.send(new StartExecutionCommand({
  stateMachineArn: machine.stateMachineArn, input: '{"ä": [1, 2.50]}' }));
let execution;
do {
  execution = await sfn.send(new DescribeExecutionCommand({ executionArn: started.executionArn }));
} while (execution.status === "RUNNING");
const history = await sfn.send(new GetExecutionHistoryCommand({ executionArn: started.executionArn }));
let refused = "";
try {
  await sfn.send(new DescribeExecutionCommand({ executionArn: started.executionArn + "x" }));
} catch (error) {
  refused = error.name;
}
console.log(JSON.stringify({
  status: execution.status, output: execution.output, isDate: execution.startDate instanceof Date,
  types: history.events.map((event) => event.type), refused }));
