package dulyfile_test

// The schema of the file, compared with what reads the file.

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// object is a JSON object.
type object = map[string]any

// keyed are the parts of the schema that have keys: where each is in a file, and the least that makes it valid.
var keyed = map[string]struct {
	wrap func(v any) object
	base object
}{
	"":                  {func(v any) object { return v.(object) }, object{}},
	"token":             {func(v any) object { return object{"tokens": []any{v}} }, object{"env": "A", "scopes": []any{"read"}}},
	"sender":            {func(v any) object { return object{"senders": []any{v}} }, nil},
	"agent":             {func(v any) object { return object{"agents": []any{v}} }, object{"agent": "a"}},
	"quiet":             {func(v any) object { return object{"agents": []any{object{"agent": "a", "quiet": []any{v}}}} }, object{"from": "01:00", "to": "02:00"}},
	"quota":             {func(v any) object { return object{"agents": []any{object{"agent": "a", "quota": v}}} }, object{}},
	"own_limit":         {func(v any) object { return object{"agents": []any{object{"agent": "a", "limits": []any{v}}}} }, object{"concurrency": 1}},
	"own_budget":        {func(v any) object { return object{"agents": []any{object{"agent": "a", "budgets": []any{v}}}} }, object{"unit": "runs", "per": "day", "amount": 1}},
	"heat":              {func(v any) object { return object{"heat": v} }, object{"from": 20}},
	"limit":             {func(v any) object { return object{"limits": []any{v}} }, object{"concurrency": 1}},
	"budget":            {func(v any) object { return object{"budgets": []any{v}} }, object{"unit": "runs", "per": "day", "amount": 1}},
	"handler":           {func(v any) object { return object{"handlers": object{"x": v}} }, object{"log": object{}}},
	"lambda":            {handled("lambda"), object{"function": "a", "async": true, "region": "eu-north-1"}},
	"sqs":               {handled("sqs"), object{"queue_url": "https://sqs.a.example/1/a", "region": "a"}},
	"pubsub":            {handled("pubsub"), object{"topic": "projects/p/topics/t"}},
	"cloud_run":         {handled("cloud_run"), object{"url": "https://a.example"}},
	"gate":              {func(v any) object { return object{"handlers": object{"x": object{"log": object{}, "gate": v}}} }, object{"exec": []any{"sh"}}},
	"identity":          {hookWith(""), object{"google": object{}}},
	"identity_google":   {hookWith("google"), object{}},
	"identity_aws":      {hookWith("aws"), object{}},
	"tool":              {func(v any) object { return object{"handlers": object{"x": object{"log": object{}, "tool": v}}} }, object{"description": "a"}},
	"activity":          {func(v any) object { return object{"handlers": object{"x": object{"log": object{}, "activity": v}}} }, object{}},
	"binding":           {func(v any) object { return object{"handlers": logs("digest"), "bindings": []any{v}} }, object{"values": object{"A": "b"}}},
	"secret":            {func(v any) object { return object{"bindings": []any{object{"values": object{"A": v}}}} }, object{"env": "HOOK_SECRET"}},
	"langgraph":         {func(v any) object { return object{"langgraph": v} }, object{"upstream": "https://a.example"}},
	"letta":             {func(v any) object { return object{"letta": v} }, object{"upstream": "https://a.example"}},
	"a2a":               {func(v any) object { return object{"a2a": v} }, object{"kind": "answer"}},
	"memos":             {func(v any) object { return object{"memos": v} }, object{"stream": object{}}},
	"stream":            {func(v any) object { return object{"memos": object{"stream": v}} }, object{}},
	"console":           {func(v any) object { return object{"console": v} }, object{"show": "on", "trace_url": "https://traces.example/{trace_id}"}},
	"approvals":         {func(v any) object { return object{"approvals": v} }, object{"url": "https://a.example", "secret_env": "HOOK_SECRET"}},
	"callbacks":         {func(v any) object { return object{"callbacks": v} }, object{"allow": []any{"https://a.example/"}, "secret_env": "HOOK_SECRET"}},
	"hook":              {hookIn(nil, ""), object{"hmac": object{"secret_env": "HOOK_SECRET"}, "signal": object{"agent": "ada", "key": "k"}}},
	"hook_secret":       {hookIn(object{"signal": object{"agent": "ada", "key": "k"}}, "github"), object{"secret_env": "HOOK_SECRET"}},
	"hook_hmac":         {hookIn(object{"signal": object{"agent": "ada", "key": "k"}}, "hmac"), object{"secret_env": "HOOK_SECRET"}},
	"hook_signal":       {hookIn(object{"hmac": object{"secret_env": "HOOK_SECRET"}}, "signal"), object{"agent": "ada", "key": "k"}},
	"alarm":             {func(v any) object { return object{"alarm": v} }, object{"webhook": object{"url": "https://a.example"}}},
	"alarm_qstash":      {func(v any) object { return object{"alarm": object{"qstash": v}} }, object{"token_env": "A", "destination": "https://a.example"}},
	"alarm_cloud_tasks": {func(v any) object { return object{"alarm": object{"cloud_tasks": v}} }, object{"queue": "projects/p/locations/l/queues/q", "url": "https://a.example", "service_account": "a@b"}},
	"alarm_sqs":         {func(v any) object { return object{"alarm": object{"sqs": v}} }, object{"queue": "https://sqs.a.example/1/a", "region": "a"}},
	"alarm_webhook":     {func(v any) object { return object{"alarm": object{"webhook": v}} }, object{"url": "https://a.example"}},
	"task": {func(v any) object {
		return object{
			"handlers":  logs("digest", "memory.rollup_day"),
			"callbacks": object{"allow": []any{"https://hooks.example.com/"}, "secret_env": "HOOK_SECRET"}, "tasks": []any{v},
		}
	}, object{"agent": "a", "id": "i", "kind": "digest"}},
}

// handled is a handler of one type.
func handled(as string) func(v any) object {
	return func(v any) object { return object{"handlers": object{"x": object{as: v}}} }
}

// hookWith is a webhook with an identity, or with one of a cloud.
func hookWith(cloud string) func(v any) object {
	return func(v any) object {
		if cloud != "" {
			v = object{cloud: v}
		}
		return object{"handlers": object{"x": object{"webhook": "https://a.example/", "identity": v}}}
	}
}

// hookIn is a hook, or one with a value at a key.
func hookIn(beside object, key string) func(v any) object {
	return func(v any) object {
		if key != "" {
			hook := maps.Clone(beside)
			hook[key] = v
			v = hook
		}
		return object{"handlers": logs("digest"), "hooks": object{"x": v}}
	}
}

// logs are handlers of some kinds.
func logs(kinds ...string) object {
	all := object{}
	for _, kind := range kinds {
		all[kind] = object{"log": object{}}
	}
	return all
}

// beside are keys that another key needs beside it; nil for one that must not be.
var beside = map[string]object{
	".urgent_slots": {"concurrency": 100}, ".default_agent": {}, ".budgets": {"partitions": 1},
	"handler.exec": {"log": nil}, "handler.worker": {"log": nil}, "handler.webhook": {"log": nil}, "gate.webhook": {"exec": nil},
	"handler.secret_env": {"log": nil, "webhook": "https://a.example/"}, "handler.insecure": {"log": nil, "webhook": "https://a.example/"},
	"handler.body": {"log": nil, "webhook": "https://a.example/"}, "handler.once": {"log": nil, "webhook": "https://a.example/"},
	"handler.allow_private": {"log": nil, "webhook": "https://a.example/"},
	"handler.headers":       {"log": nil, "webhook": "https://a.example/"}, "handler.headers_env": {"log": nil, "webhook": "https://a.example/"},
	"handler.bearer_env": {"log": nil, "webhook": "https://a.example/"}, "handler.identity": {"log": nil, "webhook": "https://a.example/"},
	"gate.headers": {"exec": nil, "webhook": "https://a.example/"}, "gate.headers_env": {"exec": nil, "webhook": "https://a.example/"},
	"gate.bearer_env": {"exec": nil, "webhook": "https://a.example/"}, "gate.identity": {"exec": nil, "webhook": "https://a.example/"},
	"identity.aws":    {"google": nil},
	"gate.secret_env": {"exec": nil, "webhook": "https://a.example/"}, "gate.insecure": {"exec": nil, "webhook": "https://a.example/"},
	"gate.allow_private": {"exec": nil, "webhook": "https://a.example/"},
	"handler.batch":      {"log": nil, "exec": []any{"sh"}}, "handler.batch_by": {"log": nil, "exec": []any{"sh"}, "batch": 2},
	"handler.output":     {"log": nil, "exec": []any{"sh"}},
	"handler.batch_wait": {"log": nil, "exec": []any{"sh"}, "batch": 2}, "handler.backoff": {"max_backoff": "1h"}, "callbacks.backoff": {"max_backoff": "2h"},
	"activity.max_wait": {"quiet": "1m"}, "limit.burst": {"rate": "1/1s"}, "own_limit.burst": {"rate": "1/1s"},
	"heat.crowd": {"delay": "5s"}, "heat.delay": {"crowd": 10},
	"limit.each": {"limit_key": "*"}, "budget.each": {"limit_key": "*"},
	"alarm_sqs.queue_arn": {"role_arn": "arn:aws:iam::1:role/r"}, "alarm_sqs.role_arn": {"queue_arn": "arn:aws:sqs:a:1:q"},
	"hook.github": {"hmac": nil}, "hook.stripe": {"hmac": nil}, "hook.cloudevents": {"hmac": nil}, "hook.standard_webhooks": {"hmac": nil}, "hook.submit": {"signal": nil},
	"alarm.qstash": {"webhook": nil}, "alarm.sqs": {"webhook": nil}, "alarm.cloud_tasks": {"webhook": nil},
	"task.agent_id": {"agent": nil}, "task.unique_key": {"id": nil}, "task.preset": {"kind": nil},
	"task.zone": {"cron": "@daily"}, "task.day_match": {"cron": "@daily"}, "task.gap": {"cron": "@daily"}, "task.overlap": {"cron": "@daily"},
	"task.misfire": {"cron": "@daily"}, "task.jitter": {"cron": "@daily"}, "task.pause_after_failures": {"cron": "@daily"},
	"task.from": {"every": "1h"}, "task.paused_reason": {"paused": true}, "task.on_late": {"expect_success": "26h"}, "handler.on_late": {"expect_success": "26h"},
}

// typed are the least senders of each type.
var typed = map[string]object{
	"standard-webhooks": {"env": "A", "scopes": []any{"read"}}, "qstash": {"env": "A", "url": "https://a.example", "scopes": []any{"read"}},
	"google": {"audience": "a", "emails": []any{"b"}, "scopes": []any{"read"}}, "github": {"audience": "a", "repositories": []any{"b"}, "scopes": []any{"read"}},
	"oidc":   {"issuer": "https://a.example", "keys": "https://a.example", "audience": "a", "emails": []any{"b"}, "scopes": []any{"read"}},
	"vercel": {"env": "A", "scopes": []any{"trigger"}},
}

// described is the schema as JSON, compiled.
type described struct {
	text     object
	compiled *jsonschema.Schema
}

func schemaOf(t *testing.T) described {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(dulyfile.Schema()))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("schema.json", doc))
	compiled, err := c.Compile("schema.json") // also against the schema of schemas
	require.NoError(t, err)
	d := described{compiled: compiled}
	require.NoError(t, json.Unmarshal([]byte(dulyfile.Schema()), &d.text))
	return d
}

// part is an object of the schema by its name; the whole file if it is empty.
func (d described) part(name string) object {
	if name == "" {
		return d.text
	}
	defs, _ := d.text["$defs"].(object)
	part, _ := defs[name].(object)
	return part
}

// keys are the keys of a part, in order.
func (d described) keys(name string) []string {
	properties, _ := d.part(name)["properties"].(object)
	return slices.Sorted(maps.Keys(properties))
}

// check validates a file.
func (d described) check(t *testing.T, text string) error {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil { // a tag that no editor knows
		return nil //nolint:nilerr // the schema has nothing to say
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	instance, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
	require.NoError(t, err)
	return d.compiled.Validate(instance)
}

// with is a file that has a value at a key of a part.
func with(part string, base object, key string, value any) string {
	v := maps.Clone(base)
	for k, other := range beside[part+"."+key] {
		if v[k] = other; other == nil {
			delete(v, k)
		}
	}
	v[key] = value
	data, _ := json.Marshal(keyed[part].wrap(v)) // JSON is YAML
	return string(data)
}

// parse is what the reader says.
func parse(t *testing.T, text string) error {
	t.Helper()
	_, err := dulyfile.Parse(t.Context(), "duly.yaml", []byte(text), dulyfile.Defaults{}, vendors()...)
	return err
}

// known are the keys that the reader names when it meets one that it does not know.
func known(t *testing.T, part string, base object) []string {
	t.Helper()
	err := parse(t, with(part, base, "aaa", 1))
	require.Error(t, err, "%s takes any key", part)
	switch _, list, found := strings.Cut(err.Error(), "unknown key; expected one of "); {
	case found:
		return strings.Split(list, ", ")
	case strings.Contains(err.Error(), "is not a field of a task"):
		return slices.Sorted(slices.Values(append(fieldsOf(t, "NewTask"), "agent")))
	case strings.Contains(err.Error(), "is not a field of a limit"):
		return fieldsOf(t, "OwnLimit")
	case strings.Contains(err.Error(), "is not a field of a budget"):
		return fieldsOf(t, "OwnBudget")
	case strings.Contains(err.Error(), "is not a field of a quota"):
		return fieldsOf(t, "Quota")
	case strings.Contains(err.Error(), "is not a field of a profile"):
		fields := slices.DeleteFunc(fieldsOf(t, "ProfileSetting"), func(name string) bool { return name == "agent_id" || name == "revision" || name == "quota_used" })
		return slices.Sorted(slices.Values(append(fields, "agent")))
	default:
		return fieldsOf(t, "QuietHours")
	}
}

// fieldsOf are the fields of an object of the API, which other tests compare with core's readers.
func fieldsOf(t *testing.T, name string) []string {
	t.Helper()
	return slices.Sorted(maps.Keys(propertiesOf(t, name)))
}

func propertiesOf(t *testing.T, name string) map[string]struct{ Description string } {
	t.Helper()
	data, err := os.ReadFile("../../adapters/http/openapi.json")
	require.NoError(t, err)
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct{ Description string }
			}
		}
	}
	require.NoError(t, json.Unmarshal(data, &doc))
	return doc.Components.Schemas[name].Properties
}

// The reader knows the keys of the schema and no others, in every part of the file.
func TestTheSchemaHasTheKeysOfTheReader(t *testing.T) { //nolint:paralleltest // it sets variables
	secrets(t)
	d := schemaOf(t)
	defs, _ := d.text["$defs"].(object)
	for name := range defs {
		if d.part(name)["properties"] != nil {
			assert.Contains(t, keyed, name, "a part that no test looks at")
		}
	}
	for name := range keyed {
		if name != "sender" {
			assert.Equal(t, known(t, name, keyed[name].base), d.keys(name), "keys of %q", name)
		}
	}
	variants, _ := d.part("sender")["oneOf"].([]any)
	require.Len(t, variants, len(typed))
	all := map[string]bool{}
	for _, v := range variants {
		variant, _ := v.(object)
		typ, _ := variant["title"].(string)
		base := maps.Clone(typed[typ])
		base["type"] = typ
		names, _ := variant["propertyNames"].(object)["enum"].([]any)
		var keys []string
		for _, name := range names {
			keys = append(keys, name.(string))
			all[name.(string)] = true
		}
		slices.Sort(keys)
		assert.Equal(t, known(t, "sender", base), keys, "keys of senders of the type %q", typ)
	}
	assert.Equal(t, slices.Sorted(maps.Keys(all)), d.keys("sender"))
}

// secrets sets the variables that the examples name.
func secrets(t *testing.T) {
	t.Helper()
	for _, name := range []string{"HOOK_SECRET", "CALLBACK_SECRET", "APPROVALS_SECRET", "ALARM_SECRET", "DIGEST_KEY"} {
		t.Setenv(name, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	}
	for _, name := range []string{"API_KEY", "AGENTS_TOKEN", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		t.Setenv(name, "eu-north-1")
	}
}

// Each key says what it is for, and its examples, its default, its values and its bounds are those of the reader.
func TestTheSchemaSaysWhatTheReaderTakes(t *testing.T) { //nolint:paralleltest // it sets variables
	secrets(t)
	d := schemaOf(t)
	tried := 0
	for name, p := range keyed {
		properties, _ := d.part(name)["properties"].(object)
		required, _ := d.part(name)["required"].([]any)
		for key, s := range properties {
			is, _ := s.(object)
			base := p.base
			if name == "sender" {
				base = senderWith(d, key)
			}
			at := name + "." + key
			assert.NotEmpty(t, is["description"], at)
			if d.leaf(is) {
				assert.NotErrorIs(t, unknownKey(parse(t, with(name, base, key, object{"aaa": 1}))), errUnknown, "%s is an object for the reader", at)
				assert.True(t, is["default"] != nil || is["x-default"] != nil || slices.Contains(required, any(key)) || name == "sender" || key == "webhook",
					"%s has neither a default nor is it required", at)
			}
			good, bad := values(is)
			for _, v := range good {
				text := with(name, base, key, v)
				if v == "exec" || strings.Contains(text, "new-mails") {
					continue // a program that does not exist here
				}
				require.NoError(t, parse(t, text), at)
				assert.NoError(t, d.check(t, text), at)
				tried++
			}
			for _, v := range bad {
				text := with(name, base, key, v)
				assert.Error(t, parse(t, text), "%s takes %v", at, v)
				assert.Error(t, d.check(t, text), "%s: %v", at, v)
				tried++
			}
		}
	}
	assert.Greater(t, tried, 250)
}

// errUnknown is what a reader of an object says about a key that it does not know.
var errUnknown = fmt.Errorf("unknown key")

func unknownKey(err error) error {
	if err != nil && strings.Contains(err.Error(), "unknown key; expected one of") && !strings.HasSuffix(err.Error(), "expected one of") {
		return errUnknown
	}
	return err
}

// senderWith is the least sender of a type that has the key.
func senderWith(d described, key string) object {
	variants, _ := d.part("sender")["oneOf"].([]any)
	for _, v := range variants {
		variant, _ := v.(object)
		names, _ := variant["propertyNames"].(object)["enum"].([]any)
		if slices.Contains(names, any(key)) {
			typ, _ := variant["title"].(string)
			base := maps.Clone(typed[typ])
			base["type"] = typ
			return base
		}
	}
	return nil
}

// leaf reports whether a value has no keys of its own.
func (d described) leaf(s object) bool {
	ref, _ := s["$ref"].(string)
	name := strings.TrimPrefix(ref, "#/$defs/")
	return s["anyOf"] == nil && s["additionalProperties"] == nil && s["items"] == nil && (ref == "" || d.part(name)["properties"] == nil)
}

// values are some that the schema takes, and some that it has to refuse.
func values(s object) (good, bad []any) {
	good, _ = s["examples"].([]any)
	good = slices.Clone(good)
	if v, ok := s["default"]; ok {
		good = append(good, v)
	}
	if all, ok := s["enum"].([]any); ok && !slices.Contains(all, any("qstash")) { // senders of other types have other keys
		good, bad = append(good, all...), append(bad, "perhaps")
	}
	if n, ok := s["minimum"].(float64); ok && n >= 0 && n == float64(int(n)) {
		good, bad = append(good, n), append(bad, n-1)
	}
	if n, ok := s["maximum"].(float64); ok {
		good, bad = append(good, n), append(bad, n+1)
	}
	switch ref, _ := s["$ref"].(string); ref {
	case "#/$defs/text":
		bad = append(bad, "", []any{"a"})
	case "#/$defs/duration":
		bad = append(bad, "0s", "-1s", "soon", 5, "1y", "P1Y")
	case "#/$defs/span":
		good, bad = append(good, "0s", 0), append(bad, "-1s", "soon", 5)
	}
	return good, bad
}

// The words about a task are those of the API.
func TestTheSchemaDescribesTasksAsTheAPIDoes(t *testing.T) {
	t.Parallel()
	properties, _ := schemaOf(t).part("task")["properties"].(object)
	for name, of := range propertiesOf(t, "NewTask") {
		if name == "agent_id" {
			name = "agent"
		}
		is, _ := properties[name].(object)
		assert.Equal(t, of.Description, is["description"], "description of %s", name)
	}
}
