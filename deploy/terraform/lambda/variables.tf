variable "name" {
  type        = string
  default     = "duly"
  description = "Name of the function, and what the names of its roles and its schedule begin with."
}

variable "zip" {
  type        = string
  default     = ""
  description = "Path of a zip with the program bootstrap for arm64; this or image_uri."
}

variable "image_uri" {
  type        = string
  default     = ""
  description = "Image in ECR whose program is bootstrap, for arm64."
}

variable "redis_secret" {
  type        = string
  description = "Name or ARN of the secret in Secrets Manager whose key url is the URL of Redis."
}

variable "secrets_key" {
  type        = string
  default     = ""
  description = "ARN of your own KMS key that encrypts the secrets, if it is not AWS'."
}

variable "key_prefix" {
  type        = string
  default     = "duly:"
  description = "Prefix of every key in Redis; deployments with the same prefix share their tasks."
}

variable "webhooks" {
  type        = map(string)
  default     = {}
  description = "A URL for each kind of task."

  validation {
    condition     = alltrue([for url in values(var.webhooks) : can(regex("^https?://", url))])
    error_message = "Each must be a URL such as https://agents.example/digest."
  }
}

variable "webhook_secret" {
  type        = string
  default     = ""
  description = "Name or ARN of the secret in Secrets Manager whose key key signs webhooks."
}

variable "tick_rate" {
  type        = string
  default     = "rate(1 minute)"
  description = "How often the function runs due tasks: rate() or cron() of EventBridge Scheduler."

  validation {
    condition     = can(regex("^(rate|cron)[(].+[)]$", var.tick_rate))
    error_message = "Must be such as rate(1 minute), rate(5 minutes) or cron(0/5 * * * ? *)."
  }
}

variable "memory_size" {
  type        = number
  default     = 256
  description = "Memory in MB; CPU comes in proportion."
}

variable "reserved_concurrency" {
  type        = number
  default     = -1
  description = "Concurrency that is reserved for the function, and its limit; -1 shares the account's."

  validation {
    condition     = var.reserved_concurrency == -1 || var.reserved_concurrency >= 2
    error_message = "Must be -1, or at least 2: with 1, AWS refuses requests while a tick runs."
  }
}

variable "subnet_ids" {
  type        = list(string)
  default     = []
  description = "Private subnets that reach Redis; empty if Redis is reached over the internet."
}

variable "security_group_ids" {
  type        = list(string)
  default     = []
  description = "Security groups of the function in these subnets."
}

variable "log_days" {
  type        = number
  default     = 14
  description = "How many days the log is kept."
}
