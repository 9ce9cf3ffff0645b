// Package agentmemorypb is what protoc makes of proto/duly/agentmemory/v1/agentmemory.proto: the messages of agent-memory's scheduler
// calls. `make proto` writes it.
package agentmemorypb
