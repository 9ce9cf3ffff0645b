package events

// Events of commands, as the log of a process and duly events show them.

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/linelog"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

func TestCommandsAreLoggedAndShown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		event         core.Event
		logged, shown string
	}{
		{
			core.Event{Type: model.EventCancel, Agent: "ada", ID: "1", Kind: "k", By: "eve", Reason: "enough"},
			"told to cancel kind=k agent=ada task=1 by=eve reason=enough", "cancel  k ada 1 by eve: enough",
		},
		{core.Event{Type: model.EventPause, Key: "openai", By: "eve"}, "paused limit_key=openai by=eve", "pause   openai by eve"},
		{core.Event{Type: model.EventResume}, "resumed", "resume  everything"},
		{core.Event{Type: model.EventDelete, Agent: "ada", ID: "1"}, "deleted agent=ada task=1", "delete  ada 1"},
		{
			core.Event{Type: model.EventBreaker, Agent: "ada", ID: "1", By: "duly", Count: 2, Error: "too deep"},
			"a run may not submit tasks agent=ada task=1 refused=2 err=\"too deep\"", "breaker ada 1 by duly: too deep",
		},
		{
			core.Event{Type: model.EventReset, By: "duly", Reason: "lost", Error: "away"},
			"nothing starts, as what the store has lost cannot be stored again err=away", "reset   everything by duly: lost: away",
		},
		{core.Event{Type: model.EventPark, Count: 2, By: "duly"}, "", "park    2 tasks by duly"},
		{
			core.Event{Type: model.EventPause, Agent: "ada", ID: "1", Kind: "k", By: "duly", Reason: "boom", Error: "boom"},
			"paused kind=k agent=ada task=1 reason=boom", "pause   k ada 1 by duly: boom",
		},
	} {
		var log, out bytes.Buffer
		Log(t.Context(), &dulyfile.File{}, slog.New(linelog.New(&log)))(c.event)
		assert.Contains(t, log.String(), c.logged)
		assert.Equal(t, c.logged != "", log.Len() > 0)
		data, err := json.Marshal(c.event)
		require.NoError(t, err)
		f := &follower{o: &command.Options{Process: &command.Process{Stdout: &out}}}
		require.NoError(t, f.printEvent(string(c.event.Type), string(data)))
		_, line, _ := strings.Cut(strings.TrimSpace(out.String()), " ")
		assert.Equal(t, c.shown, line)
	}
}
