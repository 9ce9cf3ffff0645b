# duly as one Lambda function that a schedule calls. Its rights are on what this module names, and on nothing else.

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.60"
    }
  }
}

locals {
  in_vpc = length(var.subnet_ids) > 0
}

data "aws_partition" "current" {}

data "aws_caller_identity" "current" {}

# Only where the secrets are: the function reads what they contain, so that no state of Terraform has it.
data "aws_secretsmanager_secret" "redis" {
  arn  = startswith(var.redis_secret, "arn:") ? var.redis_secret : null
  name = startswith(var.redis_secret, "arn:") ? null : var.redis_secret
}

data "aws_secretsmanager_secret" "webhook" {
  count = var.webhook_secret == "" ? 0 : 1
  arn   = startswith(var.webhook_secret, "arn:") ? var.webhook_secret : null
  name  = startswith(var.webhook_secret, "arn:") ? null : var.webhook_secret
}

resource "aws_cloudwatch_log_group" "duly" {
  name              = "/aws/lambda/${var.name}"
  retention_in_days = var.log_days
}

resource "aws_lambda_function" "duly" {
  function_name                  = var.name
  description                    = "duly, due tasks for AI agents"
  role                           = aws_iam_role.function.arn
  architectures                  = ["arm64"]
  memory_size                    = var.memory_size
  timeout                        = 60
  reserved_concurrent_executions = var.reserved_concurrency

  package_type     = var.image_uri == "" ? "Zip" : "Image"
  image_uri        = var.image_uri == "" ? null : var.image_uri
  filename         = var.zip == "" ? null : var.zip
  source_code_hash = var.zip == "" ? null : filebase64sha256(var.zip)
  runtime          = var.image_uri == "" ? "provided.al2023" : null
  handler          = var.image_uri == "" ? "bootstrap" : null

  environment {
    variables = {
      DULY_REDIS_SECRET_ID   = data.aws_secretsmanager_secret.redis.arn
      DULY_PREFIX            = var.key_prefix
      DULY_WEBHOOKS          = jsonencode(var.webhooks)
      DULY_WEBHOOK_SECRET_ID = join("", data.aws_secretsmanager_secret.webhook[*].arn)
    }
  }

  dynamic "vpc_config" {
    for_each = local.in_vpc ? [1] : []
    content {
      subnet_ids         = var.subnet_ids
      security_group_ids = var.security_group_ids
    }
  }

  logging_config {
    log_format = "JSON"
    log_group  = aws_cloudwatch_log_group.duly.name
  }

  lifecycle {
    precondition {
      condition     = (var.zip == "") != (var.image_uri == "")
      error_message = "Give one of zip and image_uri."
    }
    precondition {
      condition     = (length(var.subnet_ids) == 0) == (length(var.security_group_ids) == 0)
      error_message = "Give both subnet_ids and security_group_ids, or neither."
    }
  }

  depends_on = [aws_iam_role_policy.function, aws_iam_role_policy_attachment.vpc]
}

# A tick that failed or found no room is not repeated: the next one does its work.
resource "aws_lambda_function_event_invoke_config" "duly" {
  function_name                = aws_lambda_function.duly.function_name
  maximum_event_age_in_seconds = 60
  maximum_retry_attempts       = 0
}

# The HTTP API. AWS refuses requests that are not signed by an account that may call the function.
resource "aws_lambda_function_url" "duly" {
  function_name      = aws_lambda_function.duly.function_name
  authorization_type = "AWS_IAM"
}

resource "aws_scheduler_schedule" "tick" {
  name                = "${var.name}-tick"
  schedule_expression = var.tick_rate

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = aws_lambda_function.duly.arn
    role_arn = aws_iam_role.schedule.arn
    # Not by jsonencode: it writes < and > as escapes, which the scheduler does not replace.
    input = "{\"kind\": \"tick\", \"schedule-arn\": \"<aws.scheduler.schedule-arn>\", \"scheduled-time\": \"<aws.scheduler.scheduled-time>\"}"

    retry_policy {
      maximum_retry_attempts = 0
    }
  }
}

resource "aws_iam_role" "function" {
  name = "${var.name}-function"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "lambda.amazonaws.com" }
    }]
  })
}

resource "aws_iam_role_policy" "function" {
  name = "duly"
  role = aws_iam_role.function.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat([
      {
        Effect   = "Allow"
        Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
        Resource = ["${aws_cloudwatch_log_group.duly.arn}:*"]
      },
      {
        Effect   = "Allow"
        Action   = ["secretsmanager:GetSecretValue"]
        Resource = concat([data.aws_secretsmanager_secret.redis.arn], data.aws_secretsmanager_secret.webhook[*].arn)
      },
      ], [for key in compact([var.secrets_key]) : {
        Effect   = "Allow"
        Action   = ["kms:Decrypt"]
        Resource = [key]
    }])
  })
}

resource "aws_iam_role_policy_attachment" "vpc" {
  count      = local.in_vpc ? 1 : 0
  role       = aws_iam_role.function.name
  policy_arn = "arn:${data.aws_partition.current.partition}:iam::aws:policy/service-role/AWSLambdaVPCAccessExecutionRole"
}

resource "aws_iam_role" "schedule" {
  name = "${var.name}-schedule"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "scheduler.amazonaws.com" }
      Condition = { StringEquals = { "aws:SourceAccount" = data.aws_caller_identity.current.account_id } }
    }]
  })
}

resource "aws_iam_role_policy" "schedule" {
  name = "tick"
  role = aws_iam_role.schedule.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect   = "Allow"
      Action   = ["lambda:InvokeFunction"]
      Resource = [aws_lambda_function.duly.arn]
    }]
  })
}
