// Package host is what a program of your own needs that is a host of duly.yaml: a function or a service that others call. It reads the file, which
// is usually embedded in the program, and makes its handlers and tasks those of a scheduler. Package [github.com/seed-6f6f2c11/duly/host/aws] logs in to a
// Redis whose password rotates, or to ElastiCache by IAM.
package host
