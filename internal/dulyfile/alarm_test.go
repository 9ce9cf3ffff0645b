package dulyfile_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// Each clock can be had by the file, and its secrets are in variables, which are read when it is opened.
func TestAlarms(t *testing.T) {
	variables := []string{"T_ALARM", "T_OWN", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
	t.Setenv("AWS_REGION", "")
	for text, missing := range map[string]string{
		"qstash: {token_env: T_ALARM, destination: https://a.example, destination_token_env: T_OWN}":          "T_OWN, named by destination_token_env",
		"webhook: {url: https://a.example, secret_env: T_ALARM}":                                              "T_ALARM, named by secret_env",
		"sqs: {queue: https://sqs.a.example/1/alarms}":                                                        "region must be",
		"cloud_tasks: {queue: projects/p/locations/l/queues/q, url: https://a.example, service_account: a@b}": "",
	} {
		f, err := dulyfile.Parse(t.Context(), "duly.yaml", []byte("alarm: {"+text+"}"), dulyfile.Defaults{})
		require.NoError(t, err, "the file makes sense without them")
		clock, err := f.Alarm.Open()
		if missing == "" {
			require.NoError(t, err)
			assert.NotNil(t, clock)
			continue
		}
		require.ErrorContains(t, err, missing)
		require.Error(t, f.Alarm.Late().Set(t.Context(), time.Now()), "later")
		for _, name := range variables {
			t.Setenv(name, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
		}
		_, err = f.Alarm.Open()
		require.NoError(t, err)
		for _, name := range variables {
			t.Setenv(name, "")
		}
	}
}

// A clock that is opened late is set all the same.
func TestALateAlarm(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- string(body)
	}))
	t.Cleanup(server.Close)
	f, err := dulyfile.Parse(t.Context(), "duly.yaml", []byte("alarm: {webhook: {url: "+server.URL+"}}"), dulyfile.Defaults{})
	require.NoError(t, err)
	require.NoError(t, f.Alarm.Late().Set(t.Context(), time.Unix(1795420801, 0)))
	assert.JSONEq(t, `{"at": "2026-11-23T08:00:01Z"}`, <-asked)
}

// A function on Google Cloud is told its queue and its URL when it is deployed.
func TestTheAlarmOfAFunction(t *testing.T) {
	f, err := dulyfile.ParseFunction(t.Context(), "duly.yaml", nil)
	require.NoError(t, err)
	assert.Nil(t, f.Alarm)
	t.Setenv("DULY_ALARM_QUEUE", "projects/p/locations/l/queues/q")
	t.Setenv("DULY_ALARM_URL", "https://a.example")
	_, err = dulyfile.ParseFunction(t.Context(), "duly.yaml", nil)
	require.EqualError(t, err, "DULY_ALARM_ACCOUNT must be the e-mail of the service account whose token the call has")
	t.Setenv("DULY_ALARM_ACCOUNT", "a@b")
	f, err = dulyfile.ParseFunction(t.Context(), "duly.yaml", nil)
	require.NoError(t, err)
	clock, err := f.Alarm.Open()
	require.NoError(t, err)
	assert.NotNil(t, clock)
}
