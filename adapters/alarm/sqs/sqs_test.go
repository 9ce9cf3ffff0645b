package sqs_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/adapters/alarm/sqs"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/aws"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	queueARN = "arn:aws:sqs:eu-north-1:123456789012:alarms"
	roleARN  = "arn:aws:iam::123456789012:role/alarms"
	secret   = "aws-secret"
	session  = "session-secret"
)

// cloud is SQS and EventBridge Scheduler, as their references describe SendMessage and CreateSchedule.
type cloud struct {
	*httptest.Server

	t         *testing.T
	mu        sync.Mutex
	messages  []message
	schedules map[string]schedule
	calls     int
	refuse    int // the status of each answer, if it is set
}

type message struct {
	QueueURL     string `json:"QueueUrl"`
	MessageBody  string
	DelaySeconds int
}

type schedule struct {
	ActionAfterCompletion, GroupName, ScheduleExpression, ScheduleExpressionTimezone string
	FlexibleTimeWindow                                                               struct{ Mode string }
	Target                                                                           struct{ Arn, RoleArn, Input string }
}

func newCloud(t *testing.T) *cloud {
	t.Helper()
	c := &cloud{t: t, schedules: map[string]schedule{}}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

// signed checks a signature by making it again: internal/aws is held to the examples of AWS.
func (*cloud) signed(r *http.Request, body []byte, service string) bool {
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	again := &http.Request{Method: r.Method, URL: r.URL, Header: http.Header{}}
	again.URL.Host = r.Host
	for _, name := range []string{"Content-Type", "X-Amz-Target"} {
		if value := r.Header.Get(name); value != "" {
			again.Header.Set(name, value)
		}
	}
	s := aws.Signer{AccessKey: "AKID", SecretKey: secret, SessionToken: session, Region: "eu-north-1", Service: service}
	s.Sign(again, body, at)
	return err == nil && r.Header.Get("Authorization") == again.Header.Get("Authorization") && r.Header.Get("X-Amz-Security-Token") == session
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	body, _ := io.ReadAll(r.Body)
	fail := func(status int, kind, text string) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]string{"__type": "com.amazonaws#" + kind, "message": text})
	}
	service := "scheduler"
	if r.Header.Get("X-Amz-Target") != "" {
		service = "sqs"
	}
	switch {
	case c.refuse != 0:
		fail(c.refuse, "SomeException", "with "+r.Header.Get("X-Amz-Security-Token"))
	case !c.signed(r, body, service):
		fail(http.StatusForbidden, "InvalidSignatureException", "the canonical string has x-amz-security-token:"+session)
	case service == "sqs":
		c.sendMessage(w, r, body, fail)
	default:
		c.createSchedule(w, r, body, fail)
	}
}

func (c *cloud) sendMessage(w http.ResponseWriter, r *http.Request, body []byte, fail func(int, string, string)) {
	var m message
	err := strict(body, &m)
	switch {
	case r.Method != http.MethodPost || r.URL.Path != "/" || r.Header.Get("Content-Type") != "application/x-amz-json-1.0" ||
		r.Header.Get("X-Amz-Target") != "AmazonSQS.SendMessage" || err != nil:
		fail(http.StatusBadRequest, "SerializationException", fmt.Sprint(err))
	case !strings.HasSuffix(m.QueueURL, "/123456789012/alarms"):
		fail(http.StatusBadRequest, "QueueDoesNotExist", "The specified queue does not exist.")
	case m.DelaySeconds < 0 || m.DelaySeconds > 900 || m.MessageBody == "":
		fail(http.StatusBadRequest, "InvalidParameterValue", "Value for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900.")
	default:
		c.messages = append(c.messages, m)
		_, _ = io.WriteString(w, `{"MessageId":"1"}`)
	}
}

var scheduleName = regexp.MustCompile(`^/schedules/([0-9a-zA-Z-_.]{1,64})$`)

func (c *cloud) createSchedule(w http.ResponseWriter, r *http.Request, body []byte, fail func(int, string, string)) {
	var s schedule
	err := strict(body, &s)
	name := scheduleName.FindStringSubmatch(r.URL.Path)
	at, wrong := time.Parse("at(2006-01-02T15:04:05)", s.ScheduleExpression)
	switch {
	case r.Method != http.MethodPost || name == nil || err != nil || s.FlexibleTimeWindow.Mode != "OFF" || wrong != nil || s.ScheduleExpressionTimezone != "UTC" ||
		s.ActionAfterCompletion != "DELETE" || s.Target.Arn != queueARN || s.Target.RoleArn != roleARN || !at.After(time.Now()):
		fail(http.StatusBadRequest, "ValidationException", fmt.Sprint(err, wrong))
	case s.GroupName != "duly":
		fail(http.StatusNotFound, "ResourceNotFoundException", "Schedule group does not exist.")
	case c.schedules[name[1]].GroupName != "":
		fail(http.StatusConflict, "ConflictException", "Schedule already exists.")
	default:
		c.schedules[name[1]] = s
		_, _ = io.WriteString(w, `{"ScheduleArn":"arn:aws:scheduler:eu-north-1:123456789012:schedule/duly/x"}`)
	}
}

func strict(body []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// fixed is a clock that stands.
type fixed struct {
	core.SystemClock
	now time.Time
}

func (c fixed) Now() time.Time { return c.now }

func (c *cloud) config() sqs.Config {
	return sqs.Config{
		QueueURL: c.URL + "/123456789012/alarms", QueueARN: queueARN, RoleARN: roleARN, Group: "duly", SchedulerURL: c.URL,
		Region: "eu-north-1", AccessKey: "AKID", SecretKey: secret, SessionToken: session,
	}
}

func (c *cloud) alarm(config sqs.Config) *sqs.Alarm {
	c.t.Helper()
	a, err := sqs.New(config)
	require.NoError(c.t, err)
	var _ core.Alarm = a
	return a
}

// A time within 15 minutes is a message that is never early, and less than a second late.
func TestSoonIsADelayedMessage(t *testing.T) {
	t.Parallel()
	c, config := newCloud(t), sqs.Config{}
	now := time.Now().Truncate(time.Second).Add(300 * time.Millisecond)
	for after, delay := range map[time.Duration]int{
		700 * time.Millisecond: 1, 1700 * time.Millisecond: 2, 899*time.Second + 700*time.Millisecond: 900, 60*time.Second - 300*time.Millisecond: 60,
		-time.Minute: 0,
	} {
		config = c.config()
		config.Clock = fixed{now: now}
		at := now.Add(after)
		require.NoError(t, c.alarm(config).Set(t.Context(), at))
		got := c.messages[len(c.messages)-1]
		assert.Equal(t, delay, got.DelaySeconds, after)
		assert.JSONEq(t, `{"kind": "tick", "at": "`+at.UTC().Format(time.RFC3339)+`"}`, got.MessageBody)
	}
	assert.Empty(t, c.schedules)
}

// A later time is a schedule that fires one to three minutes before it, whichever second of its minute it fires in. The same again is none.
func TestLaterIsASchedule(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	a := c.alarm(c.config())
	begun := time.Now().UTC().Truncate(time.Minute).Add(time.Hour)
	for _, second := range []int{0, 1, 59} {
		at := begun.Add(time.Duration(second) * time.Second)
		require.NoError(t, a.Set(t.Context(), at))
		require.NoError(t, a.Set(t.Context(), at))
		s := c.schedules[fmt.Sprintf("%s-%s", c.prefix(), at.Format("20060102T150405Z"))]
		assert.JSONEq(t, `{"kind": "tick", "at": "`+at.Format(time.RFC3339)+`"}`, s.Target.Input)
		fires, err := time.Parse("at(2006-01-02T15:04:05)", s.ScheduleExpression)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, at.Sub(fires.Add(time.Minute)), time.Minute, "also if it fires at the end of its minute")
		assert.LessOrEqual(t, at.Sub(fires), 3*time.Minute)
	}
	assert.Len(t, c.schedules, 3)
	assert.Empty(t, c.messages)
	config := c.config()
	config.QueueURL += "?other"
	require.NoError(t, c.alarm(config).Set(t.Context(), begun), "another queue has schedules of its own")
	assert.Len(t, c.schedules, 4)
}

// prefix is that of all names so far.
func (c *cloud) prefix() string {
	for name := range c.schedules {
		return name[:strings.LastIndex(name, "-")]
	}
	return ""
}

// Without a role a message goes as far as it can.
func TestWithoutSchedules(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	config := c.config()
	config.RoleARN, config.QueueARN = "", ""
	require.NoError(t, c.alarm(config).Set(t.Context(), time.Now().Add(time.Hour)))
	assert.Equal(t, 900, c.messages[0].DelaySeconds)
}

// What AWS refuses says what to do and shows no secret; only 429 and 5xx are tried again.
func TestWhatAWSRefuses(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{time.Minute, time.Hour} {
		for status, calls := range map[int]int{400: 1, 403: 1, 404: 1, 429: 2, 500: 2, 503: 2} {
			c := newCloud(t)
			c.refuse = status
			err := c.alarm(c.config()).Set(t.Context(), time.Now().Add(after))
			require.ErrorContains(t, err, "SomeException with ***; ")
			assert.Equal(t, calls, c.calls, status)
		}
		c := newCloud(t)
		config := c.config()
		config.SecretKey = "wrong"
		err := c.alarm(config).Set(t.Context(), time.Now().Add(after))
		require.ErrorContains(t, err, "InvalidSignatureException")
		assert.NotContains(t, err.Error(), session)
	}
	c := newCloud(t)
	config := c.config()
	config.QueueURL += "x"
	require.ErrorContains(t, c.alarm(config).Set(t.Context(), time.Now()), "QueueDoesNotExist")
	config.Group = ""
	require.ErrorContains(t, c.alarm(config).Set(t.Context(), time.Now().Add(time.Hour)), "check the queue, the group")
}

func TestSettings(t *testing.T) {
	t.Parallel()
	right := (&cloud{Server: &httptest.Server{URL: "https://sqs.eu-north-1.amazonaws.com"}}).config()
	for field, change := range map[string]func(c *sqs.Config){
		"QueueURL": func(c *sqs.Config) { c.QueueURL += ".fifo" }, "Region": func(c *sqs.Config) { c.Region = "" },
		"AccessKey": func(c *sqs.Config) { c.SecretKey = "" }, "RoleARN": func(c *sqs.Config) { c.QueueARN = "" },
		"SchedulerURL": func(c *sqs.Config) { c.SchedulerURL = "http://a.example" },
	} {
		c := right
		change(&c)
		_, err := sqs.New(c)
		var wrong *core.ConfigError
		require.ErrorAs(t, err, &wrong)
		assert.Equal(t, field, wrong.Field)
		assert.NotContains(t, err.Error(), "secret")
	}
	_, err := sqs.New(sqs.Config{QueueURL: right.QueueURL}.With(func(name string) string { return strings.TrimPrefix(name, "AWS_ENDPOINT_URL_SCHEDULER") }))
	require.NoError(t, err, "the rest is in the environment")
}

// A function of AWS books its next call in a queue of its own.
func Example() {
	clock, err := sqs.New(sqs.Config{
		QueueURL: "https://sqs.eu-north-1.amazonaws.com/123456789012/alarms", Region: "eu-north-1", AccessKey: "AKID", SecretKey: "of the function's role",
	})
	config := core.Config{Alarm: clock}
	fmt.Println(config.Alarm != nil, err)
	// Output: true <nil>
}
