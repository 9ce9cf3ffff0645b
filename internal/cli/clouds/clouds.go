//go:build !quickstart

// Package clouds is what the program can call by the libraries of vendors. The quickstart is built without them, so that it starts sooner.
package clouds

import (
	"github.com/seed-6f6f2c11/duly/handlers/cloudrun"
	"github.com/seed-6f6f2c11/duly/handlers/lambda"
	"github.com/seed-6f6f2c11/duly/handlers/pubsub"
	"github.com/seed-6f6f2c11/duly/handlers/sqs"
	"github.com/seed-6f6f2c11/duly/internal/contract"
)

// Targets are all of them.
func Targets() []contract.Target {
	return []contract.Target{lambda.Target(), sqs.Target(), pubsub.Target(), cloudrun.Target()}
}
