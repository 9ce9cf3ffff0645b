package lambda

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// object is a JSON object whose values are read when they are asked for. Unlike encoding/json it tells apart names that
// differ in case only.
type object map[string]json.RawMessage

// parse reads an event, which has to be a JSON object.
func parse(event []byte) (object, error) {
	var o object
	if err := json.Unmarshal(event, &o); err != nil || o == nil || !utf8.Valid(event) {
		return nil, &UnknownEventError{Got: form(event)}
	}
	return o, nil
}

// form says what an event is that is no object.
func form(event []byte) string {
	event = bytes.TrimSpace(event)
	switch {
	case len(event) == 0:
		return "nothing"
	case !utf8.Valid(event) || !json.Valid(event):
		return "what is not valid JSON"
	case event[0] == '[':
		return "a list"
	default:
		return "no object"
	}
}

func (o object) has(name string) bool {
	value, ok := o[name]
	return ok && !bytes.Equal(value, []byte("null"))
}

// text is a member that is a text; empty if it is anything else.
func (o object) text(name string) string { return value[string](o, name) }

// object is a member that is an object; nil if it is anything else.
func (o object) object(name string) object { return value[object](o, name) }

// value is a member of a type, or its zero value if it is of another.
func value[V any](o object, name string) V {
	var v, zero V
	if raw, ok := o[name]; !ok || json.Unmarshal(raw, &v) != nil {
		return zero
	}
	return v
}

// source is what sent an event.
type source int

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
func sniff(o object) source {
	request := o.object("requestContext")
	switch {
	case o.has("Records"):
		return sniffRecords(o)
	case o.has("detail-type") && o.has("source"):
		return sniffEventBridge(o)
	case request != nil && !o.has("type"): // an authorizer's event looks like the request and has a type
		return sniffRequest(o, request)
	case o.text("kind") == "tick", !o.has("kind") && o.has(scheduleARN) && o.has(scheduledTime):
		return fromTick
	default:
		return fromUnknown
	}
}

func sniffRecords(o object) source {
	records := value[[]object](o, "Records")
	if len(records) == 0 {
		return fromUnknown
	}
	for _, r := range records {
		if r.text("eventSource") != "aws:sqs" {
			return fromUnknown
		}
	}
	return fromSQS
}

func sniffEventBridge(o object) source {
	if o.text("detail-type") != "Scheduled Event" {
		return fromUnknown
	}
	switch o.text("source") {
	case "aws.events":
		return fromRule
	case "aws.scheduler":
		return fromScheduler
	default:
		return fromUnknown
	}
}

func sniffRequest(o, request object) source {
	switch {
	case request.has("elb"):
		return fromALB
	case o.text("version") == "2.0" && request.has("http"):
		if strings.Contains(request.text("domainName"), ".lambda-url.") {
			return fromURL
		}
		return fromGatewayV2
	case o.text("httpMethod") != "" && !request.has("eventType"): // a websocket's event has a type
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

// Bounds of what an error tells of an event.
const (
	mostNames = 12
	mostName  = 40 // bytes
)

func unknown(o object) error {
	if len(o) == 0 {
		return &UnknownEventError{Got: "an empty object"}
	}
	names := make([]string, 0, len(o))
	for name := range o {
		names = append(names, fmt.Sprintf("%q", strings.ToValidUTF8(name[:min(len(name), mostName)], "")))
	}
	slices.Sort(names)
	if len(names) > mostNames {
		names = append(names[:mostNames], "...")
	}
	return &UnknownEventError{Got: "an object with " + strings.Join(names, ", ")}
}
