package reference

// The pages of the contracts of exec and webhook, out of what real runs were given and what their answers meant.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// SecretOfExample is what the real request of the page has to be signed with.
const SecretOfExample = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" //nolint:gosec // it opens nothing

// Seen is what real runs of a handler got, and what its answers meant to duly.
type Seen struct {
	Input, Batch json.RawMessage        // of one run, and of a batch
	Env          map[string]string      // of a program, by the names that begin with DULY_
	BatchEnv     []string               // those of the program of a batch
	Header       map[string]http.Header // of a request about a run, a batch and a gate, by these words
	Codes        map[int]string         // what an exit or a status means for a run
	Later        map[int]string         // what the status means with Retry-After
	Gate         map[int]string         // what an exit or a status means for a gate
}

// contractFiles are the files that the pages take comments and constants from.
type contractFiles struct{ input, steering, batch, gate, exec, answer, file source }

// read parses them, in the repository at root.
func (c *contractFiles) read(root string) error {
	for name, into := range map[string]*source{
		"internal/contract/input.go": &c.input, "internal/contract/steering.go": &c.steering, "internal/contract/batch.go": &c.batch,
		"internal/contract/gate.go": &c.gate, "handlers/exec/exec.go": &c.exec, "internal/contract/reply.go": &c.answer, "internal/dulyfile/handlers.go": &c.file,
	} {
		var err error
		if *into, err = parseSource(filepath.Join(root, name)); err != nil {
			return err
		}
	}
	return nil
}

// steering are examples of what a run can say about itself, by the names of the constants. Tests have a program and a server say each.
var steering = map[string]string{
	"Snooze": "10m", "Yield": `5m {"page": 2}`, "Await": `{"key": "approval", "timeout": "48h"} {"page": 2}`, "NextIn": "1h", "Progress": `{"done": 3}`, "Usage": `{"tokens": 1200}`,
}

// savesOfPrograms is what only a program can do while it runs, as there is a way to answer it.
const savesOfPrograms = "A program also saves a checkpoint while it runs: `duly-save: {\"page\": 2}`, up to 256 KiB of JSON. Each is answered by a line on file descriptor 4:\n" + `
| answer | what it says |
|---|---|
` + "| `saved` | it is stored, with the progress: the next run of this occurrence gets it, however this one ends |\n" +
	"| `lost` | another process has the task: stop, and do not do what comes next |\n" +
	"| `failed`, a colon and why | it may be stored or not; duly sends it again with the next heartbeat and with the outcome |\n\n"

// Steering are those examples by the names that programs and servers use.
func Steering(root string) (map[string]string, error) {
	file, err := parseSource(filepath.Join(root, "internal/contract/steering.go"))
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for name, c := range file.values() {
		if name != "Prefix" && name[0] >= 'A' && name[0] <= 'Z' {
			out[c.value] = steering[name]
		}
	}
	return out, nil
}

// said writes the table of what a run can say; value turns an example into what is sent.
func (c *contractFiles) said(b *strings.Builder, how string, value func(name, example string) string) {
	fmt.Fprintf(b, "\n| %s | what it says |\n|---|---|\n", how)
	all := c.steering.values()
	for _, name := range slices.Sorted(maps.Keys(steering)) {
		fmt.Fprintf(b, "| `%s` | %s |\n", value(all[name].value, steering[name]), cell(all[name].comment))
	}
}

// members writes the table of what a run is given as JSON.
func (c *contractFiles) members(b *strings.Builder) {
	b.WriteString("\n| member | type | what it says |\n|---|---|---|\n")
	for _, f := range c.input.fields("input") {
		text := f.comment
		if f.optional {
			text += "; missing if there is none"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", f.name, f.kind, cell(text))
	}
}

// outcomes writes what the answer to a batch has.
func (c *contractFiles) outcomes(b *strings.Builder, where string) {
	b.WriteString("\n" + where + ` an array with an outcome for each task, in the same order. ` + "`{}` and `null`" + ` are a success without a result; an outcome may have

| member | type | what it says |
|---|---|---|
`)
	for _, f := range c.batch.fields("said") {
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", f.name, f.kind, cell(f.comment))
	}
	b.WriteString("\n```json\n[{ \"result\": { \"stored\": 3 } }, null, { \"error\": \"rate limited\", \"retry_after\": \"30s\" }, { \"snooze\": \"10m\" }]\n```\n" + `
If there are too few outcomes, too many, or one that makes no sense, all tasks of the batch fail and are tried again, as nothing says which of them were done.
`)
}

// Exec is the page of programs. variables is the page of the environment, which says what each is.
func Exec(root, variables string, seen *Seen) (string, error) {
	var c contractFiles
	if err := c.read(root); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("# Programs\n\n" + generated + `
What a program gets that ` + "`exec`" + ` starts, and what duly makes of its answer. [The guide](../handlers.md) says how to set one up; the examples are those of a real run.

## Standard input

One JSON object:

` + "```json\n" + pretty(seen.Input) + "\n```\n")
	c.members(&b)
	b.WriteString("\n## Environment\n\nThe variables of the process that starts it, but for those that contain secrets of duly, and:\n\n| variable | in the example | what it says |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(seen.Env)) {
		text := described(variables, name)
		if text == "" {
			return "", fmt.Errorf("docs/reference/environment.md does not say what %s is", name)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, spanned(seen.Env[name]), cell(text))
	}
	b.WriteString("\n## Exit\n\n| exit | what becomes of the run |\n|---|---|\n")
	codes := c.exec.values()
	for _, name := range []string{"", "exitNoRetry", "exitLater", "exitAwaits"} {
		n, _ := strconv.Atoi(codes[name].value)
		text := codes[name].comment
		if n == 0 {
			text = "its standard output is the result: JSON unchanged, any other text as a string"
		}
		fmt.Fprintf(&b, "| %d | %s; %s |\n", n, seen.Codes[n], cell(text))
	}
	fmt.Fprintf(&b, "| any other, or a signal | %s while attempts are left; the end of its output is in the error (%s bytes of standard error, %s of standard output) |\n",
		seen.Codes[1], codes["mostStderr"].value, codes["mostStdout"].value)
	b.WriteString("\n## File descriptor 3\n\nA line each; case does not matter. One that makes no sense fails the run for good, as its work is done. Windows has no descriptor 3.\n")
	c.said(&b, "line", func(name, example string) string { return "duly-" + name + ": " + example })
	fmt.Fprintf(&b, `
%s exclude each other. A result that is a JSON object may say what it has used in a member %s.

%s## Its end

At the timeout of the task, when its lease is lost, or when duly stops, the program and all that it has started get SIGTERM, and SIGKILL %s later. Output that is still on its way is
read for %s. Nothing of its process group outlives the run.

## Batch

With %s the standard input is a JSON array of such objects. Of the variables the program gets %s and those values of bindings on which all tasks agree. Lines on descriptor 3 are refused. The exit
means for all tasks what it means for one.
`, "`duly-await`, `duly-next-in`, `duly-snooze` and `duly-yield`", "`duly_usage`", savesOfPrograms, c.exec.span("killAfter"), c.exec.span("drainWithin"), "`batch`", list(slices.Sorted(slices.Values(seen.BatchEnv))))
	c.outcomes(&b, "It prints")
	fmt.Fprintf(&b, "\n## As a gate\n\nIt gets what a handler gets, and has %s without a `timeout`.\n\n| exit | what becomes of the run |\n|---|---|\n", c.gate.span("GateTimeout"))
	for _, n := range []int{0, 1} {
		fmt.Fprintf(&b, "| %d | %s |\n", n, seen.Gate[n])
	}
	fmt.Fprintf(&b, "| any other, a signal, or the timeout | %s while attempts are left |\n\n", seen.Gate[2])
	b.WriteString("Exit 0 means the same as exit 1 if the output, or its last line, is `{\"wake\": false}` or `{\"wakeAgent\": false}`. Any other output goes to the handler as the member `gate`.\n")
	return b.String(), nil
}

// headerText says what each header of a request is.
var headerText = map[string]string{
	"Content-Type":      "always this",
	"User-Agent":        "always this",
	"Webhook-Id":        "of Standard Webhooks: the same for every repeat of a call, also of one that failed, and another for the call after a `Duly-Await`, a `Duly-Yield`, a `Duly-Snooze` or a `Retry-After`, so that the receiver can pass over repeats. A batch has one of its own, and a question of a gate another each time",
	"Webhook-Timestamp": "of Standard Webhooks: when this request was sent, in seconds since 1970",
	"Webhook-Signature": "of Standard Webhooks: `v1,` and the base64 of the HMAC-SHA256 of id, timestamp and body with dots between them, by the key of the secret; missing without a secret",
	"Traceparent":       "the traceparent of the task, if it has one; of a batch there is none",
	"Duly-Parent":       "the run, for tasks that the server submits: it sends the header along",
	"Duly-Value-Tenant": "a value of [bindings](../extending.md#bindings), here TENANT: `_` of a name is `-`. The signature does not cover headers",
	"If-None-Match":     "of a gate: the `ETag` that it sent with the last answer whose run has succeeded",
}

// ofTransport are headers that every client of HTTP sends.
var ofTransport = []string{"Accept-Encoding", "Connection", "Content-Length", "Host"}

// Webhook is the page of servers.
func Webhook(root string, seen *Seen) (string, error) {
	var c contractFiles
	if err := c.read(root); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("# Webhooks\n\n" + generated + `
What a server gets that ` + "`webhook`" + ` posts to, and what duly makes of its answer. [The guide](../handlers.md) says how to set one up; the examples are those of a real run.

## Request

` + "```\nPOST /digest HTTP/1.1\n")
	run := seen.Header["run"]
	for _, name := range slices.Sorted(maps.Keys(run)) {
		if !slices.Contains(ofTransport, name) {
			fmt.Fprintf(&b, "%s: %s\n", name, run.Get(name))
		}
	}
	b.WriteString("\n" + pretty(seen.Input) + "\n```\n\nThe signature is by the secret `" + SecretOfExample + "`, and the body is sent in one line. duly follows no redirect and uses no proxy.\n")
	if err := headers(&b, seen.Header); err != nil {
		return "", err
	}
	b.WriteString("\nThe keys `headers`, `headers_env`, `bearer_env` and `identity` of [a handler](file.md#handlerskind) add others, by which a server knows whom to let in.\n\n## Body\n\nOne JSON object:\n")
	c.members(&b)
	b.WriteString("\n## Answer\n\n| status | what becomes of the run | with `Retry-After` |\n|---|---|---|\n")
	ranges(&b, seen.Codes, seen.Later)
	fmt.Fprintf(&b, "| no answer | %s | |\n", seen.Codes[500])
	fmt.Fprintf(&b, `
The body of a 2xx is the result: JSON unchanged, any other text as a string. Of any other answer the first %s bytes are in the error. `+"`Retry-After`"+` is seconds or a date, at most %s from now.
Without a `+"`timeout`"+` in the file a webhook has %s.

## Headers of an answer

Those of a 2xx; %s counts with any status. One that makes no sense fails the run for good, as its work is done. With a yield or an await the body is the checkpoint.
`, c.answer.values()["MostErrorAnswer"].value, c.answer.span("mostRetryAfter"), c.file.span("webhookTimeout"), "`Duly-Usage`")
	c.said(&b, "header", func(name, example string) string {
		if name == "yield" || name == "await" {
			example = strings.TrimSuffix(example, ` {"page": 2}`)
		}
		return http.CanonicalHeaderKey("duly-"+name) + ": " + example
	})
	b.WriteString("\n`Duly-Await`, `Duly-Next-In`, `Duly-Snooze` and `Duly-Yield` exclude each other. A result that is a JSON object may say what it has used in a member `duly_usage`.\n" + `
## Batch

With ` + "`batch`" + ` the body is a JSON array of such objects, and the ` + "`Webhook-Id`" + ` begins with ` + "`batch_`" + `. A status other than 2xx means for all tasks what it means for one. The headers above are refused.
`)
	c.outcomes(&b, "It answers with")
	fmt.Fprintf(&b, "\n## As a gate\n\nIt gets what a handler gets, and has %s without a `timeout`.\n\n| status | what becomes of the run |\n|---|---|\n", c.gate.span("GateTimeout"))
	ranges(&b, seen.Gate, nil)
	b.WriteString("\n412 means the same as 304 if the request had an `If-None-Match`. 200 means the same as 204 if the body is `{\"wake\": false}` or `{\"wakeAgent\": false}`; any other body goes to the handler as the member `gate`.\n")
	return b.String(), nil
}

// headers writes what the headers of requests are, and which requests have them.
func headers(b *strings.Builder, of map[string]http.Header) error {
	names := map[string][]string{}
	for _, request := range slices.Sorted(maps.Keys(of)) {
		for name := range of[request] {
			if !slices.Contains(ofTransport, name) {
				names[name] = append(names[name], request)
			}
		}
	}
	for name := range headerText {
		if names[name] == nil {
			return fmt.Errorf("no request has the header %s", name)
		}
	}
	b.WriteString("\n| header | about | what it says |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if headerText[name] == "" {
			return fmt.Errorf("nothing says what the header %s is: add it to headerText", name)
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, strings.Join(names[name], ", "), cell(headerText[name]))
	}
	return nil
}

// ranges writes what statuses mean, those that mean the same in one line.
func ranges(b *strings.Builder, codes, later map[int]string) {
	lines := map[string][]string{}
	var order []string
	all := slices.Sorted(maps.Keys(codes))
	for i := 0; i < len(all); {
		j := i
		means := func(n int) string {
			if later == nil {
				return codes[n]
			}
			if later[n] == codes[n] {
				return codes[n] + " | the same"
			}
			return codes[n] + " | " + later[n]
		}
		for j+1 < len(all) && means(all[j+1]) == means(all[i]) {
			j++
		}
		text := strconv.Itoa(all[i])
		if j > i {
			text += " to " + strconv.Itoa(all[j])
		}
		if lines[means(all[i])] == nil {
			order = append(order, means(all[i]))
		}
		lines[means(all[i])] = append(lines[means(all[i])], text)
		i = j + 1
	}
	for _, means := range order {
		fmt.Fprintf(b, "| %s | %s |\n", strings.Join(lines[means], ", "), means)
	}
}

// described is what the page of the environment says about a variable.
func described(page, name string) string {
	for line := range strings.Lines(page) {
		if rest, ok := strings.CutPrefix(line, "| `"+name+"` | "); ok {
			return strings.TrimSuffix(strings.TrimSpace(rest), " |")
		}
		if pattern, text, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "*` | "); ok && strings.HasPrefix(name, pattern) {
			return strings.TrimSuffix(strings.TrimSpace(text), " |")
		}
	}
	return ""
}

// spanned is a value in a code span, or nothing.
func spanned(value string) string {
	if value == "" {
		return ""
	}
	return "`" + value + "`"
}

// pretty is JSON over several lines.
func pretty(data []byte) string {
	var out bytes.Buffer
	if json.Indent(&out, data, "", "  ") != nil {
		return string(data)
	}
	return out.String()
}
