package lambda

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-6f6f2c11/duly/adapters/internal/strictjson"
	"github.com/seed-6f6f2c11/duly/adapters/internal/trigger"
)

// Events: what sent one. Lambda hands over bare JSON, and the same function may be given any.

// parse reads an event, which has to be a JSON object.
func parse(event []byte) (strictjson.Object, error) {
	o, err := strictjson.Parse("event", event)
	if err != nil {
		return nil, &UnknownEventError{Got: form(event)}
	}
	return o, nil
}

// form says what an event is that is no object.
func form(event []byte) string {
	event = bytes.TrimSpace(event)
	switch {
	case len(event) == 0:
		return "an empty event"
	case !utf8.Valid(event) || !json.Valid(event):
		return "invalid JSON"
	case event[0] == '[':
		return "an array"
	default:
		return "a value that is not an object"
	}
}

// source is what sent an event.
type source int

// The values are only compared with one another.
const (
	fromUnknown source = iota
	fromRule
	fromScheduler
	fromTick
	fromSQS
	fromALB
	fromURL
	fromGatewayV1
	fromGatewayV2
)

// sniff finds out what sent an event. What no rule fits is unknown: an event that means something else must not run
// tasks.
// It looks at members that a sender always sets, and at as many of them as
// are needed to exclude the others.
func sniff(o strictjson.Object) source {
	request := o.Object("requestContext")
	switch {
	case o.Has("Records"):
		return sniffRecords(o)
	case o.Has("detail-type") && o.Has("source"):
		return sniffEventBridge(o)
	case request != nil && !o.Has("type"): // an authorizer's event looks like the request and has a type
		return sniffRequest(o, request)
	case trigger.IsTick(o), !o.Has("kind") && o.Has(scheduleARN) && o.Has(scheduledTime):
		return fromTick
	default:
		return fromUnknown
	}
}

// sniffRecords accepts records of SQS only, and all of them: S3, SNS and streams have Records too.
func sniffRecords(o strictjson.Object) source {
	records := strictjson.Value[[]strictjson.Object](o, "Records")
	if len(records) == 0 {
		return fromUnknown
	}
	for _, r := range records {
		if r.Text("eventSource") != "aws:sqs" {
			return fromUnknown
		}
	}
	return fromSQS
}

// sniffEventBridge accepts scheduled events only: a rule may pass on
// anything that happens in an account.
func sniffEventBridge(o strictjson.Object) source {
	if o.Text("detail-type") != "Scheduled Event" {
		return fromUnknown
	}
	switch o.Text("source") {
	case "aws.events":
		return fromRule
	case "aws.scheduler":
		return fromScheduler
	default:
		return fromUnknown
	}
}

// sniffRequest tells apart the four services that send HTTP requests.
func sniffRequest(o, request strictjson.Object) source {
	switch {
	case request.Has("elb"):
		return fromALB
	case o.Text("version") == "2.0" && request.Has("http"):
		if strings.Contains(request.Text("domainName"), ".lambda-url.") {
			return fromURL
		}
		return fromGatewayV2
	case o.Text("httpMethod") != "" && !request.Has("eventType"): // a websocket's event has a type
		return fromGatewayV1
	default:
		return fromUnknown
	}
}

// UnknownEventError says that an event is none that the function knows. Nothing was done.
type UnknownEventError struct {
	// Got is what came instead: the names of its members, without their values.
	Got string
}

// Error says what was expected, and what came.
func (e *UnknownEventError) Error() string {
	return "lambda: want a Scheduled Event of EventBridge, an SQS event, an HTTP request of a Function URL, API Gateway or " +
		`load balancer, or {"kind":"tick"}; got ` + e.Got
}

// mostNames is how many members of an event an error names. Their values it never shows: they may be secrets.
const mostNames = 12

// unknown describes an event by the names of its members.
func unknown(o strictjson.Object) error {
	if len(o) == 0 {
		return &UnknownEventError{Got: "an empty object"}
	}
	names := make([]string, 0, len(o))
	for name := range o {
		names = append(names, fmt.Sprintf("%q", trigger.Clip(name, trigger.MaxName)))
	}
	slices.Sort(names)
	if len(names) > mostNames {
		names = append(names[:mostNames], "...")
	}
	return &UnknownEventError{Got: "an object with " + strings.Join(names, ", ")}
}
