package dulyfile_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// owned is a file with tasks of one agent each.
func owned(t *testing.T, from, to int, rest string) *dulyfile.File {
	t.Helper()
	var b strings.Builder
	_, _ = b.WriteString("owner: deploy-7\nhandlers: { note: { log: {} } }\ntasks:\n")
	for i := from; i < to; i++ {
		_, _ = fmt.Fprintf(&b, "  - { agent: agent-%d, id: nightly, kind: note, every: 1h%s }\n", i, rest)
	}
	f, err := dulyfile.Parse(t.Context(), "duly.yaml", []byte(b.String()), dulyfile.Defaults{})
	require.NoError(t, err)
	return f
}

// An apply that is cut off after any of its steps is completed by the same apply. More tasks go than fit on a page.
func TestAnApplyThatIsCutOffIsCompletedByTheNext(t *testing.T) {
	t.Parallel()
	for _, after := range []int{1, 130, 250} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			t.Parallel()
			st, err := redisstore.Open(t.Context(), redisstore.Config{URL: redistest.Start(t).URL})
			require.NoError(t, err)
			t.Cleanup(func() { _ = st.Close() })
			s, err := core.New(st, core.Config{})
			require.NoError(t, err)
			_, err = owned(t, 0, 240, "").Apply(t.Context(), s)
			require.NoError(t, err)
			_, err = s.Submit(t.Context(), core.NewTask{Agent: "agent-3", ID: "by-hand", Kind: "note", Manual: true})
			require.NoError(t, err)

			next := owned(t, 230, 250, ", level: 1")
			ctx, kill := context.WithCancel(t.Context())
			n := 0
			_, err = next.ApplyWith(ctx, s, dulyfile.ApplyOptions{Prune: true, Each: func(dulyfile.Change) {
				if n++; n == after {
					kill()
				}
			}})
			if after < 250 {
				require.ErrorIs(t, err, context.Canceled)
			}
			_, err = next.ApplyWith(t.Context(), s, dulyfile.ApplyOptions{Prune: true})
			require.NoError(t, err)
			left, cursor, err := s.Tasks(t.Context(), core.List{Limit: inspect.MaxPage})
			for cursor != "" && err == nil {
				var more []core.TaskInfo
				more, cursor, err = s.Tasks(t.Context(), core.List{Limit: inspect.MaxPage, Cursor: cursor})
				left = append(left, more...)
			}
			require.NoError(t, err)
			assert.Len(t, left, 20+1)
			for i := range left {
				assert.True(t, left[i].ID == "by-hand" || left[i].Level == core.LevelHigh && left[i].Owner() == "deploy-7", left[i].Agent)
			}
		})
	}
}

// Nobody's tasks are pruned.
func TestAPruneNeedsAnOwner(t *testing.T) {
	t.Parallel()
	f, err := dulyfile.Parse(t.Context(), "duly.yaml", nil, dulyfile.Defaults{})
	require.NoError(t, err)
	_, err = f.ApplyWith(t.Context(), nil, dulyfile.ApplyOptions{Prune: true})
	require.ErrorContains(t, err, "give --owner, or owner: in the file")
}
