// Package deploy has what duly is deployed with: the program that makes its image, a Helm chart, and modules of Terraform. It is a module
// of its own, so that nobody who uses duly gets the modules of registries and of Kubernetes.
package deploy
