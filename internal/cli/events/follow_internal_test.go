package events

import (
	"bytes"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/internal/cli/command"
)

// A stream that beats goes on; one that has fallen silent, as when the server's machine is gone, is given up.
func TestASilentStreamIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		body, server := io.Pipe()
		var out, said bytes.Buffer
		f := &follower{o: &command.Options{Process: &command.Process{Stdout: &out, Stderr: &said}}}
		begun := time.Now()
		go func() {
			for range 20 {
				_, _ = io.WriteString(server, ": beat\n\n")
				time.Sleep(15 * time.Second)
			}
		}()
		err := f.read(body, func() { _ = body.Close() })
		require.ErrorContains(t, err, "the server has sent nothing for 45s")
		assert.Equal(t, 19*15*time.Second+silentFor, time.Since(begun))
	})
}
