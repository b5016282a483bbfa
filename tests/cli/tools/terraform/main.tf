terraform {
  required_providers {
    aws = { source = "hashicorp/aws", version = ">= 5" }
  }
}

variable "stateyard" { default = "http://127.0.0.1:8083" }
variable "services" { default = "http://127.0.0.1:5000" }

provider "aws" {
  region                      = "us-east-1"
  profile                     = "stateyard"
  skip_requesting_account_id  = true
  skip_metadata_api_check     = true
  skip_region_validation      = true
  skip_credentials_validation = true

  endpoints {
    sfn       = var.stateyard
    events    = var.stateyard
    scheduler = var.stateyard
    sts       = var.stateyard
    dynamodb  = var.services
    iam       = var.services
    lambda    = var.services
    sqs       = var.services
  }
}

resource "aws_dynamodb_table" "orders" {
  name         = "orders"
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "id"
  attribute {
    name = "id"
    type = "S"
  }
}

resource "aws_sqs_queue" "shipments" {
  name = "shipments"
}

resource "aws_iam_role" "order" {
  name = "order"
  assume_role_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Action = "sts:AssumeRole", Principal = { Service = "states.amazonaws.com" } }]
  })
}

resource "aws_sfn_state_machine" "order" {
  name     = "order"
  role_arn = aws_iam_role.order.arn
  tags     = { team = "shop" }
  publish  = true
  definition = jsonencode({
    StartAt = "Ask"
    States = {
      Ask = {
        Type           = "Task"
        Resource       = "arn:aws:states:::lambda:invoke"
        Parameters     = { FunctionName = "price", "Payload.$" = "$" }
        ResultSelector = { "total.$" = "$.Payload.total" }
        ResultPath     = "$.price"
        Next           = "Save"
      }
      Save = {
        Type     = "Task"
        Resource = "arn:aws:states:::dynamodb:putItem"
        Parameters = {
          TableName = aws_dynamodb_table.orders.name
          Item      = { id = { "S.$" = "$.id" }, total = { "N.$" = "States.Format('{}', $.price.total)" } }
        }
        ResultPath = null
        Next       = "Ship"
      }
      Ship = {
        Type       = "Task"
        Resource   = "arn:aws:states:::sqs:sendMessage"
        Parameters = { QueueUrl = aws_sqs_queue.shipments.url, "MessageBody.$" = "$" }
        ResultPath = null
        End        = true
      }
    }
  })
}

resource "aws_sfn_alias" "live" {
  name = "live"
  routing_configuration {
    state_machine_version_arn = aws_sfn_state_machine.order.state_machine_version_arn
    weight                    = 100
  }
}

resource "aws_sfn_activity" "approve" {
  name = "approve"
}

resource "aws_cloudwatch_event_rule" "placed" {
  name          = "placed"
  tags          = { team = "shop" }
  event_pattern = jsonencode({ source = ["shop"], "detail-type" = ["placed"] })
}

resource "aws_cloudwatch_event_target" "order" {
  rule       = aws_cloudwatch_event_rule.placed.name
  arn        = aws_sfn_state_machine.order.arn
  role_arn   = aws_iam_role.order.arn
  input_path = "$.detail"
}

resource "aws_scheduler_schedule_group" "shop" {
  name = "shop"
}

resource "aws_scheduler_schedule" "nightly" {
  name                = "nightly"
  group_name          = aws_scheduler_schedule_group.shop.name
  schedule_expression = "cron(0 3 * * ? *)"
  flexible_time_window { mode = "OFF" }
  target {
    arn      = aws_sfn_state_machine.order.arn
    role_arn = aws_iam_role.order.arn
    input    = jsonencode({ id = "nightly", amount = 1 })
  }
}

data "aws_sfn_state_machine" "order" {
  name       = aws_sfn_state_machine.order.name
  depends_on = [aws_sfn_state_machine.order]
}

data "aws_caller_identity" "me" {}

output "arn" { value = data.aws_sfn_state_machine.order.arn }
output "account" { value = data.aws_caller_identity.me.account_id }
