variable "name" {
  type        = string
  default     = "duly"
  description = "Name of the service; those of its account and of the job begin with it."

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,18}[a-z0-9]$", var.name))
    error_message = "Must be 2 to 20 lower-case letters, digits and dashes, that begin with a letter and end without a dash."
  }
}

variable "region" {
  type        = string
  description = "Region of the service and of the job, such as europe-west1."
}

variable "image" {
  type        = string
  description = "Image of examples/cloud-run, with your handlers in its duly.yaml."
}

variable "redis_secret" {
  type        = string
  description = "Secret in Secret Manager that is the URL of Redis: its name, or projects/PROJECT/secrets/NAME."
}

variable "redis_secret_version" {
  type        = string
  default     = "latest"
  description = "Version of that secret; only new instances read a newer one."
}

variable "key_prefix" {
  type        = string
  default     = "duly:"
  description = "Prefix of every key in Redis; deployments with the same prefix share their tasks."
}

variable "tick_schedule" {
  type        = string
  default     = "* * * * *"
  description = "How often the service runs due tasks: cron, in UTC."
}

variable "callers" {
  type        = set(string)
  default     = []
  description = "Who else may call the service, such as serviceAccount:agents@PROJECT.iam.gserviceaccount.com."

  validation {
    condition     = !contains(var.callers, "allUsers") && !contains(var.callers, "allAuthenticatedUsers")
    error_message = "The service trusts each caller that Google admits: name accounts."
  }
}

variable "network" {
  type        = string
  default     = ""
  description = "Network that reaches Redis; empty if Redis is reached over the internet."
}

variable "subnetwork" {
  type        = string
  default     = ""
  description = "Subnetwork of that network, in the region."
}

variable "memory" {
  type        = string
  default     = "512Mi"
  description = "Memory of an instance."
}

variable "max_instances" {
  type        = number
  default     = 5
  description = "How many instances may run; it protects Redis."
}

variable "deletion_protection" {
  type        = bool
  default     = true
  description = "Whether terraform destroy refuses to delete the service."
}
