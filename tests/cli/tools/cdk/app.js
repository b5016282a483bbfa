const cdk = require("aws-cdk-lib");
const dynamodb = require("aws-cdk-lib/aws-dynamodb");
const events = require("aws-cdk-lib/aws-events");
const eventsTargets = require("aws-cdk-lib/aws-events-targets");
const lambda = require("aws-cdk-lib/aws-lambda");
const scheduler = require("aws-cdk-lib/aws-scheduler");
const schedulerTargets = require("aws-cdk-lib/aws-scheduler-targets");
const sfn = require("aws-cdk-lib/aws-stepfunctions");
const sqs = require("aws-cdk-lib/aws-sqs");
const tasks = require("aws-cdk-lib/aws-stepfunctions-tasks");

class Shop extends cdk.Stack {
  constructor(scope, id) {
    super(scope, id);
    const table = new dynamodb.Table(this, "Orders", {
      tableName: "orders",
      partitionKey: { name: "id", type: dynamodb.AttributeType.STRING },
    });
    const queue = new sqs.Queue(this, "Shipments", { queueName: "shipments" });
    const price = new lambda.Function(this, "Price", {
      functionName: "price",
      runtime: lambda.Runtime.PYTHON_3_13,
      handler: "index.handler",
      code: lambda.Code.fromInline("def handler(event, context):\n    return {'total': event['amount'] * 2}\n"),
    });
    const ask = new tasks.LambdaInvoke(this, "Ask", {
      lambdaFunction: price,
      payload: sfn.TaskInput.fromJsonPathAt("$"),
      resultSelector: { total: sfn.JsonPath.objectAt("$.Payload.total") },
      resultPath: "$.price",
    });
    const save = new tasks.DynamoPutItem(this, "Save", {
      table,
      item: {
        id: tasks.DynamoAttributeValue.fromString(sfn.JsonPath.stringAt("$.id")),
        total: tasks.DynamoAttributeValue.numberFromString(sfn.JsonPath.format("{}", sfn.JsonPath.stringAt("$.price.total"))),
      },
      resultPath: sfn.JsonPath.DISCARD,
    });
    const ship = new tasks.SqsSendMessage(this, "Ship", {
      queue,
      messageBody: sfn.TaskInput.fromJsonPathAt("$"),
      resultPath: sfn.JsonPath.DISCARD,
    });
    const machine = new sfn.StateMachine(this, "Order", {
      stateMachineName: "order",
      definitionBody: sfn.DefinitionBody.fromChainable(ask.next(save).next(ship)),
      timeout: cdk.Duration.minutes(5),
    });
    const child = new sfn.StateMachine(this, "Nightly", {
      definitionBody: sfn.DefinitionBody.fromFile("nightly.asl.json"),
      definitionSubstitutions: { OrderArn: machine.stateMachineArn },
      stateMachineType: sfn.StateMachineType.STANDARD,
    });
    machine.grantStartExecution(child);
    new events.Rule(this, "Placed", {
      eventPattern: { source: ["shop"], detailType: ["placed"] },
      targets: [new eventsTargets.SfnStateMachine(machine, { input: events.RuleTargetInput.fromEventPath("$.detail") })],
    });
    new scheduler.Schedule(this, "EveryNight", {
      schedule: scheduler.ScheduleExpression.cron({ hour: "3", minute: "0" }),
      target: new schedulerTargets.StepFunctionsStartExecution(child, {
        input: scheduler.ScheduleTargetInput.fromObject({ nightly: true }),
      }),
    });
    new sfn.Activity(this, "Approve", { activityName: "approve" });
  }
}

const app = new cdk.App();
new Shop(app, "Shop");
