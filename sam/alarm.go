package main

import (
	"errors"
	"fmt"

	"github.com/seed-6f6f2c11/duly/adapters/alarm/sqs"
	"github.com/seed-6f6f2c11/duly/core"
)

// The alarm: the template's parameter of this name gives the function a queue to book its next call in.

// alarmSettings are the variables, by the fields that they are for.
var alarmSettings = map[string]string{
	"QueueURL": "DULY_ALARM_QUEUE", "QueueARN": "DULY_ALARM_QUEUE_ARN", "RoleARN": "DULY_ALARM_ROLE", "Group": "DULY_ALARM_GROUP",
}

// alarm is the clock outside, and the ARN of the queue that it calls by; nil and empty without one.
func alarm(get func(string) string) (core.Alarm, string, error) {
	c := sqs.Config{
		QueueURL: get("DULY_ALARM_QUEUE"), QueueARN: get("DULY_ALARM_QUEUE_ARN"), RoleARN: get("DULY_ALARM_ROLE"), Group: get("DULY_ALARM_GROUP"),
	}.With(get)
	if c.QueueURL == "" {
		return nil, "", nil
	}
	a, err := sqs.New(c)
	if wrong, ok := errors.AsType[*core.ConfigError](err); ok && alarmSettings[wrong.Field] != "" {
		return nil, "", fmt.Errorf("%s %s", alarmSettings[wrong.Field], wrong.Reason)
	}
	if err != nil {
		return nil, "", fmt.Errorf("DULY_ALARM_QUEUE: %w", err)
	}
	return a, c.QueueARN, nil
}
