// Package rpc serves the control of jobs by gRPC, gRPC-Web and Connect, on the port of the HTTP API: give [New]'s handler to
// httpadapter.Config.RPC, which asks for the same credentials as for its own routes.
//
// The service is described in proto/duly/scheduler/v1/scheduler.proto, and package schedulerpb has a client.
package rpc
