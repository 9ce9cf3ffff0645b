package cli_test

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/http/rpc/schedulerpb"
)

// A daemon answers gRPC without TLS on its port, to callers with a token, and an open connection does not hold its end up.
func TestTheDaemonSpeaksGRPC(t *testing.T) {
	t.Parallel()
	w := inMemory()
	w.env = append(w.env, "DULY_TOKEN=secret")
	d := w.start(t, "daemon", "-c", file(t, handlersFile+"tasks:\n  - { agent: ann, id: daily, kind: note, cron: 0 9 * * * }\n"), "--http", "127.0.0.1:0", "--default-agent", "ann")
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	client := schedulerpb.NewSchedulerServiceClient(&http.Client{Transport: transport}, d.url(t), connect.WithGRPC())
	request := connect.NewRequest(&schedulerpb.GetSchedulerStatusRequest{})
	_, err := client.GetSchedulerStatus(t.Context(), request)
	require.Equal(t, connect.CodeUnauthenticated, connect.CodeOf(err), err)
	request.Header().Set("Authorization", "Bearer secret")
	var status *connect.Response[schedulerpb.GetSchedulerStatusResponse]
	require.Eventually(t, func() bool { // a process is told of from its first pull on
		status, err = client.GetSchedulerStatus(t.Context(), request)
		return err == nil && status.Msg.GetSchedulerRunning()
	}, 20*time.Second, 10*time.Millisecond)
	require.Len(t, status.Msg.GetJobs(), 1)
	assert.Equal(t, "daily", status.Msg.GetJobs()[0].GetJobName())
	pause := connect.NewRequest(&schedulerpb.PauseJobRequest{JobName: "daily"})
	pause.Header().Set("Authorization", "Bearer secret")
	paused, err := client.PauseJob(t.Context(), pause)
	require.NoError(t, err)
	assert.Equal(t, "ann", paused.Msg.GetJob().GetAgentId(), "the default agent")
	code, took := d.stop(t, syscall.SIGTERM)
	assert.Zero(t, code)
	assert.Less(t, took, 5*time.Second)
}
