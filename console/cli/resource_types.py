"""Names and ARNs of the resources of a template, by type."""

from __future__ import annotations

ARNS = {
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
NAMES = {
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
