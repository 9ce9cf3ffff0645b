output "url" {
  description = "The HTTP API; callers send a token of OpenID Connect for this audience."
  value       = google_cloud_run_v2_service.duly.uri
}

output "service_account" {
  description = "Account that the service runs as, for rights on what the tasks use."
  value       = google_service_account.duly.email
}

output "tick_service_account" {
  description = "Account that calls the service."
  value       = google_service_account.tick.email
}
