package lambda_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	lambdaadapter "github.com/seed-6f6f2c11/duly/adapters/lambda"
	"github.com/seed-6f6f2c11/duly/core"
)

// Each kind of event is answered in its own form, which shows that it was taken for what it is.
func TestKnownEvents(t *testing.T) {
	t.Parallel()
	form := map[string]string{
		"rule": "completed", "scheduler": "completed", "tick": "completed", "tick-agents": "completed",
		"tick-scheduler": "completed", "input-scheduler": "completed", "sqs": "batchItemFailures",
		"sqs-fifo": "batchItemFailures", "url": "statusCode", "gateway-v1": "statusCode", "gateway-v2": "statusCode",
		"alb": "statusDescription", "alb-multi": "statusDescription",
	}
	files, err := filepath.Glob("testdata/known/*.json")
	require.NoError(t, err)
	assert.Len(t, files, len(form))
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, lambdaadapter.Config{HTTP: http.NotFoundHandler()})
			assert.Contains(t, f.invoke(t, known(t, name)), form[name])
		})
	}
}

// What is not known is refused, and neither runs nor writes anything.
func TestForeignEvents(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/foreign/*.json")
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(files), 12)
	f := setup(t, lambdaadapter.Config{HTTP: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a foreign event was served as a request")
	})})
	f.submit(t, core.NewTask{Agent: "ada", ID: "due", Kind: "ok"})
	submits := f.store.submits()
	for _, file := range files {
		event, err := os.ReadFile(file)
		require.NoError(t, err)
		data, err := f.function.Invoke(t.Context(), event)
		var foreign *lambdaadapter.UnknownEventError
		if assert.ErrorAs(t, err, &foreign, "%s was answered: %s", file, data) {
			assert.Contains(t, err.Error(), `{"kind":"tick"}`, "it says what was expected")
			assert.Less(t, len(err.Error()), 1500)
		}
	}
	assert.Zero(t, f.store.claims())
	assert.Equal(t, submits, f.store.submits())
	assert.Equal(t, core.StatusWaiting, f.status(t, "ada", "due"))
}

func TestARefusalTellsNamesAndNoValues(t *testing.T) {
	t.Parallel()
	f := setup(t, lambdaadapter.Config{})
	for event, want := range map[string]string{
		`{"job":"secret","n":1}`:     `an object with "job", "n"`,
		``:                           "got an empty event",
		`[1]`:                        "got an array",
		`{}`:                         "got an empty object",
		`{"a`:                        "got invalid JSON",
		"{\"\xff\":1}":               "got invalid JSON",
		`null`:                       "got a value that is not an object",
		`{"` + long + `":1,"b":"s"}`: `"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"`,
	} {
		_, err := f.function.Invoke(t.Context(), json.RawMessage(event))
		require.Error(t, err)
		assert.Contains(t, err.Error(), want)
		assert.NotContains(t, err.Error(), "secret")
		assert.Less(t, len(err.Error()), 400)
	}
}

var long = strings.Repeat("x", 5000)

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	_, err := lambdaadapter.New(nil, lambdaadapter.Config{})
	require.EqualError(t, err, "lambda: a scheduler is required")
	f := setup(t, lambdaadapter.Config{})
	_, err = lambdaadapter.New(f.scheduler, lambdaadapter.Config{Margin: -1})
	assert.EqualError(t, err, "lambda: Margin must not be negative, got -1ns")
}

// Whatever comes in, it is answered or refused with a reason, and only what asks for a tick claims anything.
func FuzzInvoke(f *testing.F) {
	for _, folder := range []string{"known", "foreign"} {
		files, err := filepath.Glob("testdata/" + folder + "/*.json")
		require.NoError(f, err)
		for _, file := range files {
			event, err := os.ReadFile(file)
			require.NoError(f, err)
			f.Add(event)
		}
	}
	f.Fuzz(func(t *testing.T, event []byte) {
		x := setup(t, lambdaadapter.Config{HTTP: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte(r.Method + r.URL.String()))
		})})
		answer, err := x.function.Invoke(t.Context(), event)
		if claimed := x.store.claims() > 0; claimed {
			assert.True(t, asksForATick(event), "it ran tasks: %s", event)
		}
		if err != nil {
			var foreign *lambdaadapter.UnknownEventError
			assert.True(t, errors.As(err, &foreign) || core.CodeOf(err) == core.CodeInvalid, "%v", err)
			return
		}
		assert.True(t, json.Valid(answer), "%s", answer)
		assert.LessOrEqual(t, len(answer), lambdaadapter.MaxAnswer)
	})
}

// asksForATick is a second opinion on what may run tasks.
func asksForATick(event []byte) bool {
	var o map[string]any
	if json.Unmarshal(event, &o) != nil {
		return false
	}
	scheduled := o["detail-type"] == "Scheduled Event" && (o["source"] == "aws.events" || o["source"] == "aws.scheduler")
	named := o["schedule-arn"] != nil && o["scheduled-time"] != nil
	return scheduled || o["kind"] == "tick" || named
}
