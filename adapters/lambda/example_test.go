package lambda_test

import (
	"context"
	"encoding/json"
	"fmt"

	lambdaadapter "github.com/seed-6f6f2c11/duly/adapters/lambda"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

// A main hands Invoke to the runtime's loop; here are two events as it would bring them.
func ExampleFunction_Invoke() {
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
	if err != nil {
		panic(err)
	}
	core.Handle(s, "digest", func(context.Context, *core.Task[any]) error { return nil })
	f, err := lambdaadapter.New(s, lambdaadapter.Config{})
	if err != nil {
		panic(err)
	}
	for _, event := range []string{
		`{"Records":[{"eventSource":"aws:sqs","messageId":"m1","body":"{\"agent_id\":\"ada\",\"kind\":\"digest\"}"}]}`,
		`{"kind":"tick","agent_ids":["ada"]}`,
	} {
		answer, err := f.Invoke(context.Background(), json.RawMessage(event))
		if err != nil {
			panic(err)
		}
		var told struct {
			Failures  []any `json:"batchItemFailures"`
			Completed int
		}
		if err := json.Unmarshal(answer, &told); err != nil {
			panic(err)
		}
		fmt.Println(len(told.Failures), "records failed,", told.Completed, "tasks completed")
	}
	// Output:
	// 0 records failed, 0 tasks completed
	// 0 records failed, 1 tasks completed
}
