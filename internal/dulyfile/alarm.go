package dulyfile

// The alarm: the clock outside that is asked to call when something falls due.

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/alarm/cloudtasks"
	"github.com/seed-6f6f2c11/duly/adapters/alarm/qstash"
	"github.com/seed-6f6f2c11/duly/adapters/alarm/sqs"
	"github.com/seed-6f6f2c11/duly/adapters/alarm/webhook"
	"github.com/seed-6f6f2c11/duly/core"
)

// Alarm is the clock of the file. Its secrets are in variables of the environment, which are read when it is opened.
type Alarm struct {
	at      place
	secrets map[string]string // the variables, by the keys that name them
	keys    map[string]string // of the file, by the fields of the clock's configuration
	open    func(get func(string) string) (core.Alarm, error)
}

// Open makes the alarm, without any call. It fails if a variable is missing: the error names the variable and never shows its value.
func (a *Alarm) Open() (core.Alarm, error) {
	for _, key := range slices.Sorted(maps.Keys(a.secrets)) {
		if name := a.secrets[key]; strings.TrimSpace(os.Getenv(name)) == "" {
			return nil, a.at.fail("the environment variable %s, named by %s, is not set or empty", name, key)
		}
	}
	return a.make(func(name string) string { return strings.TrimSpace(os.Getenv(name)) })
}

// make is open with its error at the place in the file.
func (a *Alarm) make(get func(string) string) (core.Alarm, error) {
	clock, err := a.open(get)
	if wrong, ok := errors.AsType[*core.ConfigError](err); ok {
		return nil, a.at.fail("%s %s", cmp.Or(a.keys[wrong.Field], wrong.Field), wrong.Reason)
	}
	return clock, err
}

// Late is the same clock, opened when it is first asked for: a command that books nothing needs none of its secrets.
func (a *Alarm) Late() core.Alarm { return &lateAlarm{open: sync.OnceValues(a.Open)} }

// lateAlarm is what Late returns.
type lateAlarm struct {
	open func() (core.Alarm, error)
}

// Set opens the clock, and sets it.
func (l *lateAlarm) Set(ctx context.Context, at time.Time) error {
	clock, err := l.open()
	if err != nil {
		return err
	}
	return clock.Set(ctx, at)
}

// trialSecret is one of every sort: what a clock is tried with when the file is read.
const trialSecret = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

// readAlarm reads the key alarm, which has one clock, and tries it, so that its mistakes are those of the file.
func (f *File) readAlarm(p place) error {
	if p.node == nil || p.empty() {
		return nil
	}
	var found []*Alarm
	clock := func(read func(p place) (*Alarm, error)) reader {
		return func(p place) error {
			a, err := read(p)
			if err != nil {
				return err
			}
			a.at = p
			maps.DeleteFunc(a.secrets, func(_, name string) bool { return name == "" })
			found = append(found, a)
			return nil
		}
	}
	if err := p.read(map[string]reader{
		"qstash": clock(readQStash), "webhook": clock(readAlarmWebhook), "sqs": clock(readSQS), "cloud_tasks": clock(readCloudTasks),
	}); err != nil {
		return err
	}
	if len(found) != 1 {
		return p.fail("must have one of cloud_tasks, qstash, sqs, webhook")
	}
	f.Alarm = found[0]
	f.secrets = slices.AppendSeq(f.secrets, maps.Values(f.Alarm.secrets))
	_, err := f.Alarm.make(func(name string) string {
		if strings.HasPrefix(name, "AWS_ENDPOINT_URL") || name == "GCE_METADATA_HOST" {
			return ""
		}
		return trialSecret
	})
	return err
}

// readQStash reads the settings of QStash.
func readQStash(p place) (*Alarm, error) {
	var c qstash.Config
	var token, own string
	err := p.read(map[string]reader{
		"url": text(&c.URL), "token_env": text(&token), "destination": text(&c.Destination), "destination_token_env": text(&own),
	})
	if err == nil && token == "" {
		err = p.fail("must have token_env, the environment variable that contains the token of QStash")
	}
	return &Alarm{
		secrets: map[string]string{"token_env": token, "destination_token_env": own},
		keys:    map[string]string{"URL": "url", "Token": "token_env", "Destination": "destination"},
		open: func(get func(string) string) (core.Alarm, error) {
			with := c
			with.Token = get(token)
			if own != "" {
				with.DestinationToken = get(own)
			}
			return alarm(qstash.New(with))
		},
	}, err
}

// readAlarmWebhook reads the settings of a server that calls back.
func readAlarmWebhook(p place) (*Alarm, error) {
	var c webhook.Config
	var secret string
	err := p.read(map[string]reader{"url": text(&c.URL), "secret_env": text(&secret), "insecure": boolean(&c.Insecure)})
	return &Alarm{
		secrets: map[string]string{"secret_env": secret},
		keys:    map[string]string{"URL": "url", "Secret": "secret_env"},
		open: func(get func(string) string) (core.Alarm, error) {
			with := c
			if secret != "" {
				with.Secret = get(secret)
			}
			return alarm(webhook.New(with))
		},
	}, err
}

// readSQS reads the settings of SQS. Credentials are those of the environment, as AWS' own programs have them.
func readSQS(p place) (*Alarm, error) {
	var c sqs.Config
	err := p.read(map[string]reader{
		"queue": text(&c.QueueURL), "queue_arn": text(&c.QueueARN), "role_arn": text(&c.RoleARN), "group": text(&c.Group), "region": text(&c.Region),
	})
	return &Alarm{
		keys: map[string]string{"QueueURL": "queue", "QueueARN": "queue_arn", "RoleARN": "role_arn", "Region": "region"},
		open: func(get func(string) string) (core.Alarm, error) { return alarm(sqs.New(c.With(get))) },
	}, err
}

// readCloudTasks reads the settings of Cloud Tasks. The access token belongs to the account that the program runs as.
func readCloudTasks(p place) (*Alarm, error) {
	var c cloudtasks.Config
	err := p.read(map[string]reader{
		"queue": text(&c.Queue), "url": text(&c.URL), "service_account": text(&c.ServiceAccount), "audience": text(&c.Audience),
	})
	return cloudTasks(c), err
}

// cloudTasks is an alarm of Cloud Tasks.
func cloudTasks(c cloudtasks.Config) *Alarm {
	return &Alarm{
		keys: map[string]string{"Queue": "queue", "URL": "url", "ServiceAccount": "service_account"},
		open: func(get func(string) string) (core.Alarm, error) {
			with := c
			with.MetadataHost = get("GCE_METADATA_HOST")
			return alarm(cloudtasks.New(with))
		},
	}
}

// alarm is a clock, and nil without one: a nil pointer in an interface is none.
func alarm[C core.Alarm](clock C, err error) (core.Alarm, error) {
	if err != nil {
		return nil, err
	}
	return clock, nil
}

// The variables that configure the alarm of a function on Google Cloud, as its URL is known only once it is deployed.
const (
	envAlarmQueue   = "DULY_ALARM_QUEUE"
	envAlarmURL     = "DULY_ALARM_URL"
	envAlarmAccount = "DULY_ALARM_ACCOUNT"
)

// alarmOfFunction puts what the environment says over the alarm of the file.
func (f *File) alarmOfFunction(get func(string) string) error {
	if get(envAlarmQueue) == "" {
		return nil
	}
	f.Alarm = cloudTasks(cloudtasks.Config{Queue: get(envAlarmQueue), URL: get(envAlarmURL), ServiceAccount: get(envAlarmAccount)})
	f.Alarm.keys = map[string]string{"Queue": envAlarmQueue, "URL": envAlarmURL, "ServiceAccount": envAlarmAccount}
	_, err := f.Alarm.open(get)
	if wrong, ok := errors.AsType[*core.ConfigError](err); ok {
		return errors.New(f.Alarm.keys[wrong.Field] + " " + wrong.Reason)
	}
	return err
}
