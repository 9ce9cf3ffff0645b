# duly as a private service of Cloud Run that Cloud Scheduler calls with a token of OpenID Connect.

terraform {
  required_version = ">= 1.5"
  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 6.0"
    }
  }
}

# What the service runs as. It may read the secret, and nothing else.
resource "google_service_account" "duly" {
  account_id   = "${var.name}-run" # Google wants six characters or more
  display_name = "duly"
}

# What calls the service.
resource "google_service_account" "tick" {
  account_id   = "${var.name}-tick"
  display_name = "Calls duly when it is time to look for due tasks"
}

# Only a right on the secret: the service reads what it contains, so that no state of Terraform has it.
resource "google_secret_manager_secret_iam_member" "redis" {
  secret_id = var.redis_secret
  role      = "roles/secretmanager.secretAccessor"
  member    = "serviceAccount:${google_service_account.duly.email}"
}

resource "google_cloud_run_v2_service" "duly" {
  name                = var.name
  location            = var.region
  deletion_protection = var.deletion_protection

  template {
    service_account = google_service_account.duly.email
    timeout         = "60s"

    scaling {
      max_instance_count = var.max_instances
    }

    containers {
      image = var.image

      resources {
        limits   = { cpu = "1", memory = var.memory }
        cpu_idle = true
      }

      env {
        name = "DULY_REDIS_URL"
        value_source {
          secret_key_ref {
            secret  = var.redis_secret
            version = var.redis_secret_version
          }
        }
      }

      env {
        name  = "DULY_PREFIX"
        value = var.key_prefix
      }
    }

    dynamic "vpc_access" {
      for_each = var.network == "" ? [] : [1]
      content {
        egress = "PRIVATE_RANGES_ONLY"
        network_interfaces {
          network    = var.network
          subnetwork = var.subnetwork
        }
      }
    }
  }

  lifecycle {
    precondition {
      condition     = (var.network == "") == (var.subnetwork == "")
      error_message = "Give both network and subnetwork, or neither."
    }
  }

  depends_on = [google_secret_manager_secret_iam_member.redis]
}

resource "google_cloud_run_v2_service_iam_member" "tick" {
  name     = google_cloud_run_v2_service.duly.name
  location = var.region
  role     = "roles/run.invoker"
  member   = "serviceAccount:${google_service_account.tick.email}"
}

resource "google_cloud_run_v2_service_iam_member" "callers" {
  for_each = var.callers
  name     = google_cloud_run_v2_service.duly.name
  location = var.region
  role     = "roles/run.invoker"
  member   = each.value
}

resource "google_cloud_scheduler_job" "tick" {
  name      = "${var.name}-tick"
  region    = var.region
  schedule  = var.tick_schedule
  time_zone = "Etc/UTC"
  # The service's timeout: a job that gives up before it would call again while the first call is still running.
  attempt_deadline = "60s"

  retry_config {
    retry_count = 0
  }

  http_target {
    http_method = "POST"
    uri         = google_cloud_run_v2_service.duly.uri

    oidc_token {
      service_account_email = google_service_account.tick.email
      audience              = google_cloud_run_v2_service.duly.uri
    }
  }

  depends_on = [google_cloud_run_v2_service_iam_member.tick]
}
