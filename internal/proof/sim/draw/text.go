package draw

// What is asked for, as a story says it.

import (
	"fmt"
	"strings"
)

// String says what is asked for.
func (r *Request) String() string {
	switch r.Kind {
	case AskSubmit:
		names := make([]string, len(r.Tasks))
		for i, def := range r.Tasks {
			names[i] = def.String()
		}
		return "submit " + strings.Join(names, " ")
	case AskPause, AskResume:
		if r.For == 0 {
			return fmt.Sprintf("%s %s", r.Kind, r.Target)
		}
		return fmt.Sprintf("%s %s for %s", r.Kind, r.Target, r.For)
	case AskProfile:
		return fmt.Sprintf("%s of %s: %s", r.Kind, r.Agent, r.quietText())
	default:
		return fmt.Sprintf("%s %s/%s%s", r.Kind, r.Agent, r.ID, r.Key)
	}
}

// String names a definition, and what is special about it.
func (d *Definition) String() string {
	parts := []string{fmt.Sprintf("%s/%s (number %d", d.Agent, d.ID, d.Number), d.Kind}
	add := func(name string, value any) {
		if text := fmt.Sprint(value); text != "" && text != "0" && text != "0s" {
			parts = append(parts, name+" "+text)
		}
	}
	if !d.At.IsZero() {
		add("at", d.At.Sub(Begin))
	}
	add("delay", d.Delay)
	add("every", d.Every)
	add("from", d.From)
	add("cron", d.Cron)
	add("overlap", d.Overlap)
	add("misfire", d.Misfire)
	add("jitter", d.Jitter)
	add("min interval", d.MinInterval)
	add("level", d.Level)
	add("group", d.Group)
	add("key", d.LimitKey)
	add("attempts", d.MaxAttempts)
	add("on conflict", d.OnConflict)
	return strings.Join(parts, ", ") + ")"
}

// quietText says what a request does with the profile.
func (r *Request) quietText() string {
	if r.Profile == nil {
		return "none"
	}
	var parts []string
	for _, h := range r.Profile.Quiet {
		parts = append(parts, h.From+"-"+h.To)
	}
	return fmt.Sprint(strings.Join(parts, " "), " in ", r.Profile.Zone, ", urgent ", r.Profile.Urgent)
}
