package sqs

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/apicall"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/aws"
)

const (
	// mostDelay is the longest delay of a message.
	mostDelay = 900 * time.Second
	// early is how long before a time its schedule is: it fires within the minute that it names, which then is over a minute before the
	// time at the latest, and so is left for the call of the function and the message.
	early = 2 * time.Minute
)

// Config says where the messages go, and who sends them.
type Config struct {
	// QueueURL is a standard queue for alarms alone: https://sqs.REGION.amazonaws.com/ACCOUNT/NAME.
	QueueURL string
	// QueueARN is the same queue, and RoleARN what EventBridge Scheduler may send to it by. Both or neither.
	QueueARN, RoleARN string
	// Group is the group of the schedules: "default" if empty. One for each deployment lets its rights be few.
	Group string
	// Region is the queue's region.
	Region string
	// AccessKey, SecretKey and SessionToken are those of a role that may sqs:SendMessage to the queue and, for schedules, scheduler:CreateSchedule
	// in the group and iam:PassRole for RoleARN.
	AccessKey, SecretKey, SessionToken string
	// SchedulerURL is the endpoint of EventBridge Scheduler: the region's if empty.
	SchedulerURL string
	// Client is one of the package's own if nil, and Clock core.SystemClock.
	Client *http.Client
	Clock  core.Clock
}

// With fills in what is empty from the environment of AWS: region, credentials and endpoint.
func (c Config) With(get func(string) string) Config {
	c.Region = cmp.Or(c.Region, get("AWS_REGION"))
	c.SchedulerURL = cmp.Or(c.SchedulerURL, get("AWS_ENDPOINT_URL_SCHEDULER"))
	if c.AccessKey == "" {
		c.AccessKey, c.SecretKey, c.SessionToken = get("AWS_ACCESS_KEY_ID"), get("AWS_SECRET_ACCESS_KEY"), get("AWS_SESSION_TOKEN")
	}
	return c
}

// Alarm sends messages and makes schedules. It is safe for concurrent use.
type Alarm struct {
	config          Config
	signer          aws.Signer
	endpoint        string // of SQS
	queue           string // names it in schedules
	send, schedules apicall.API
}

// New checks the configuration, without any call. Its error is a *core.ConfigError, without the credentials.
func New(c Config) (*Alarm, error) {
	u, err := url.Parse(c.QueueURL)
	wrong := func(field, reason string) (*Alarm, error) {
		return nil, &core.ConfigError{Field: field, Reason: reason}
	}
	switch {
	case err != nil || apicall.CheckURL("QueueURL", c.QueueURL, false) != nil || strings.Trim(u.Path, "/") == "":
		return wrong("QueueURL", "must be that of a queue, such as https://sqs.eu-north-1.amazonaws.com/123456789012/alarms")
	case strings.HasSuffix(u.Path, ".fifo"):
		return wrong("QueueURL", "must be a standard queue: a FIFO queue delays no single message")
	case c.Region == "":
		return wrong("Region", "must be the region of the queue: set AWS_REGION")
	case c.AccessKey == "" || c.SecretKey == "":
		return wrong("AccessKey", "must be set, as must SecretKey: they are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment")
	case (c.RoleARN == "") != (c.QueueARN == ""):
		return wrong("RoleARN", "must be given together with QueueARN, or neither")
	case c.RoleARN != "" && (!strings.HasPrefix(c.RoleARN, "arn:") || !strings.HasPrefix(c.QueueARN, "arn:")):
		return wrong("RoleARN", "and QueueARN must be ARNs")
	}
	c.Group = cmp.Or(c.Group, "default")
	c.SchedulerURL = strings.TrimSuffix(cmp.Or(c.SchedulerURL, "https://scheduler."+c.Region+domain(c.Region)), "/")
	if err := apicall.CheckURL("SchedulerURL", c.SchedulerURL, false); err != nil {
		return nil, err
	}
	if c.Clock == nil {
		c.Clock = core.SystemClock{}
	}
	name := sha256.Sum256([]byte(c.QueueURL))
	a := &Alarm{
		config: c, endpoint: u.Scheme + "://" + u.Host + "/", queue: hex.EncodeToString(name[:4]),
		signer: aws.Signer{AccessKey: c.AccessKey, SecretKey: c.SecretKey, SessionToken: c.SessionToken, Region: c.Region},
	}
	a.send = a.api("SQS", "sqs:SendMessage on the queue")
	a.schedules = a.api("EventBridge Scheduler", "scheduler:CreateSchedule in the group and iam:PassRole for RoleARN")
	return a, nil
}

// domain is what the names of AWS' hosts end in.
func domain(region string) string {
	if strings.HasPrefix(region, "cn-") {
		return ".amazonaws.com.cn"
	}
	return ".amazonaws.com"
}

// api is one of the two services.
func (a *Alarm) api(name, rights string) apicall.API {
	c := &a.config
	return apicall.API{
		Name: name, Client: c.Client, Clock: c.Clock, Hidden: []string{c.SecretKey, c.SessionToken}, Reason: reason,
		Todo: map[int]string{
			http.StatusBadRequest: "check the queue, and that the role has " + rights, http.StatusForbidden: "the role needs " + rights,
			http.StatusNotFound: "check the queue, the group of schedules and the region",
		},
	}
}

// Set sends a message that is delayed until a time, or makes a schedule that sends one a little earlier. The same schedule again is none, as
// it has the time in its name; the same message again is another one.
func (a *Alarm) Set(ctx context.Context, at time.Time) error {
	message := `{"kind":"tick","at":"` + at.UTC().Format(time.RFC3339) + `"}`
	switch wait := at.Sub(a.config.Clock.Now()); {
	case wait > mostDelay && a.config.RoleARN != "":
		return a.schedule(ctx, at, message)
	default:
		return a.delay(ctx, min(wait, mostDelay), message)
	}
}

// delay sends a message. The delay is in whole seconds, and rounded up: an alarm never rings early.
func (a *Alarm) delay(ctx context.Context, wait time.Duration, message string) error {
	body, err := json.Marshal(struct {
		QueueURL     string `json:"QueueUrl"`
		MessageBody  string
		DelaySeconds int64
	}{a.config.QueueURL, message, int64(max(0, wait+time.Second-1) / time.Second)})
	if err != nil {
		return err
	}
	_, err = a.send.Do(ctx, func(ctx context.Context) (*http.Request, error) {
		return a.request(ctx, "sqs", a.endpoint, body, http.Header{
			"Content-Type": {"application/x-amz-json-1.0"}, "X-Amz-Target": {"AmazonSQS.SendMessage"},
		})
	})
	return err
}

// schedule makes a schedule that fires once.
func (a *Alarm) schedule(ctx context.Context, at time.Time, message string) error {
	c := &a.config
	body, err := json.Marshal(map[string]any{
		"ActionAfterCompletion": "DELETE", "FlexibleTimeWindow": map[string]string{"Mode": "OFF"}, "GroupName": c.Group,
		"ScheduleExpression":         "at(" + at.UTC().Add(-early).Truncate(time.Minute).Format("2006-01-02T15:04:05") + ")",
		"ScheduleExpressionTimezone": "UTC",
		"Target":                     map[string]string{"Arn": c.QueueARN, "RoleArn": c.RoleARN, "Input": message},
	})
	if err != nil {
		return err
	}
	to := fmt.Sprintf("%s/schedules/duly-%s-%s", c.SchedulerURL, a.queue, at.UTC().Format("20060102T150405Z"))
	_, err = a.schedules.Do(ctx, func(ctx context.Context) (*http.Request, error) {
		return a.request(ctx, "scheduler", to, body, http.Header{"Content-Type": {"application/json"}})
	})
	if refused, ok := errors.AsType[*apicall.StatusError](err); ok && refused.Status == http.StatusConflict {
		return nil // there is one for this time already
	}
	return err
}

// request is a signed one.
func (a *Alarm) request(ctx context.Context, service, to string, body []byte, header http.Header) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = header.Clone()
	signer := a.signer
	signer.Service = service
	signer.Sign(r, body, a.config.Clock.Now())
	return r, nil
}

// reason is what AWS says: a type, which may be a whole URI, and a message.
func reason(body []byte) string {
	var said struct {
		Type    string `json:"__type"`
		Message string // or message, which is the same to encoding/json
	}
	if json.Unmarshal(body, &said) != nil || said.Type == "" && said.Message == "" {
		return string(body)
	}
	return strings.TrimSpace(said.Type[strings.LastIndexByte(said.Type, '#')+1:] + " " + said.Message)
}
