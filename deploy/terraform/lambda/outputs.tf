output "function" {
  description = "Name of the function; invoke it with {\"kind\":\"tick\"} to run what is due now."
  value       = aws_lambda_function.duly.function_name
}

output "url" {
  description = "The HTTP API, without a slash at its end; requests have to be signed (AWS_IAM)."
  value       = trimsuffix(aws_lambda_function_url.duly.function_url, "/")
}

output "role" {
  description = "ARN of the function's role, for rights on what the tasks use."
  value       = aws_iam_role.function.arn
}
