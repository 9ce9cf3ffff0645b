// Package schedulerpb is what protoc makes of proto/duly/scheduler/v1/scheduler.proto: the messages, and a client and a handler of
// the service. `make proto` writes it.
package schedulerpb
