package contract

// Targets: what runs tasks at a vendor, by the vendor's own library.

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// Target is a sort of place at a vendor. Its library is linked by programs that name it, and by no other.
type Target struct {
	Name string // its key in duly.yaml
	// Open makes what runs the tasks of a kind. Its error is a *core.ConfigError if the configuration is to blame. It calls no server.
	Open func(ctx context.Context, c TargetConfig) (Runner, error)
	// Prove makes what proves to a webhook who calls it. One of the two is set.
	Prove func(c TargetConfig) (Prover, error)
}

// TargetConfig says where a place is and how it is called. Each target uses a part of it.
type TargetConfig struct {
	To           string        // the function, the URL of the queue, the topic, the audience of a service
	Region       string        // that of the environment if empty
	Endpoint     string        // the vendor's if empty, or that of the environment
	Async        bool          // the answer comes later, by a signal
	AnswerWithin time.Duration // until then
}

// Runner runs tasks one by one.
type Runner interface {
	Run(ctx context.Context, t *core.Task[json.RawMessage]) error
}

// Prover adds to a request what proves who sends it.
type Prover interface {
	Prove(r *http.Request, body []byte) error
}
