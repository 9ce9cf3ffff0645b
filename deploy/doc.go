// Package deploy has what duly is deployed with in containers: the program that makes its image, and a Helm chart. It is a module
// of its own, so that nobody who uses duly gets the modules of registries and of Kubernetes.
package deploy
