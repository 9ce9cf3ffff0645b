package importer

// Periodic tasks of asynq: a scheduler that runs writes its entries to a list, each as a message of protobuf.

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/protobuf/encoding/protowire"
)

// asynqEntry is an entry of a scheduler.
type asynqEntry struct {
	id, spec, kind string
	payload        []byte
	options        []string
}

// asynq reads the entries of all schedulers. Replicas have the same ones, under other ids.
func (f *Found) asynq(ctx context.Context, c *redis.Client, agent string) error {
	lists, err := c.ZRange(ctx, "asynq:schedulers", 0, mostKeys).Result()
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, list := range lists {
		entries, err := c.LRange(ctx, list, 0, mostKeys).Result()
		if err != nil {
			return err
		}
		slices.Reverse(entries) // asynq pushes them in front
		for _, data := range entries {
			e, err := asynqRead([]byte(data))
			if err != nil {
				f.left("an entry of "+list, "left out: %v", err)
				continue
			}
			if same := strings.Join(append([]string{e.spec, e.kind, string(e.payload)}, e.options...), "\x00"); !seen[same] {
				seen[same] = true
				f.asynqEntry(e, agent)
			}
		}
	}
	if len(f.Tasks) > 0 {
		f.left("handlers", "write what runs the kinds in the place of worker, or pull them by a worker. Stop asynq's scheduler, or each runs twice")
	}
	return nil
}

// asynqRead reads the first five fields of asynq.SchedulerEntry.
func asynqRead(data []byte) (*asynqEntry, error) {
	e := &asynqEntry{}
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return nil, errors.New("it is no entry of asynq")
		}
		data = data[n:]
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
				return nil, errors.New("it is no entry of asynq")
			}
			data = data[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(data)
		if n < 0 {
			return nil, errors.New("it is no entry of asynq")
		}
		data = data[n:]
		switch int(number) {
		case 1:
			e.id = string(value)
		case 2:
			e.spec = string(value)
		case 3:
			e.kind = string(value)
		case 4:
			e.payload = value
		case 5:
			e.options = append(e.options, string(value))
		}
	}
	return e, nil
}

var asynqOption = pattern(`^(\w+)\((.*)\)$`)

// asynqEntry reads one.
func (f *Found) asynqEntry(e *asynqEntry, agent string) {
	where := "entry " + e.kind + " (" + e.spec + ")"
	t := Task{Agent: agent, ID: named(e.kind), Kind: named(e.kind)}
	if !f.asynqTime(where, e.spec, &t) {
		return
	}
	var payload map[string]any
	switch err := json.Unmarshal(e.payload, &payload); {
	case len(e.payload) == 0:
	case err == nil:
		t.Payload = payload
	default:
		t.Payload = map[string]any{"base64": base64.StdEncoding.EncodeToString(e.payload)}
		f.left(where, "its payload is no JSON object: it has it as base64")
	}
	h := f.work(t.Kind)
	for _, option := range e.options {
		m := asynqOption().FindStringSubmatch(option)
		if m == nil {
			continue
		}
		switch name, value := m[1], m[2]; name {
		case "MaxRetry":
			if n, err := strconv.Atoi(value); err == nil && n < 1000 {
				h.Attempts = n + 1
			}
		case "Timeout":
			if d, err := time.ParseDuration(value); err == nil && d > 0 {
				h.Timeout = d.String()
			}
		case "TaskID":
			t.ID = cmp.Or(strings.Trim(value, `"`), t.ID)
		default:
			f.left(where, "%s: duly has no such option of a task", option)
		}
	}
	h.Worker = &struct{}{}
	f.Kinds[t.Kind] = h
	f.add(t)
}

// asynqTime sets when an entry is due: an expression, with a zone before it if it has one of its own, or @every.
func (f *Found) asynqTime(where, spec string, t *Task) bool {
	for _, prefix := range []string{"CRON_TZ=", "TZ="} {
		if rest, ok := strings.CutPrefix(spec, prefix); ok {
			t.Zone, spec, _ = strings.Cut(rest, " ")
		}
	}
	if rest, ok := strings.CutPrefix(spec, "@every "); ok {
		every, err := time.ParseDuration(strings.TrimSpace(rest))
		if err != nil {
			f.left(where, "left out: %q is no interval", rest)
			return false
		}
		t.From = "start"
		return f.every(where, t, every)
	}
	t.Cron = strings.TrimSpace(spec)
	if !f.cron(where, t.Cron, t.Zone) {
		return false
	}
	if t.Zone == "" {
		f.left(where, "its zone is that of the scheduler's Location, which Redis does not have: duly reads it in `zone:` of the file, or UTC")
	}
	return true
}
