// Package bounds sets, lifts and reads limits and budgets, and knows their texts in Redis.
package bounds

// Limits: how they are stored, set and read.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Bounds sets, lifts and reads limits and budgets; see [store.Bounds].
type Bounds struct{ db call.DB }

// New has the bounds of a database whose partitions are known.
func New(db *call.DB) Bounds { return Bounds{db: *db} }

// eachOf are the scripts' letters for what a limit counts separately.
var eachOf = map[bound.Each]string{"": "", bound.EachAgent: "a", bound.EachKey: "k", bound.EachTask: "t"}

// ofProfile is the letter of limits and budgets of one agent's profile; see layout.lua.
const ofProfile = "o"

// LimitName is the name of a limit in the scripts: kind|key|each. A star at the end of a key is not encoded: it is not part of the key.
func LimitName(t bound.LimitTarget) string {
	key, star := strings.CutSuffix(t.Key, "*")
	name := t.Kind + "|" + layout.Encode(key)
	if star {
		name += "*"
	}
	if t.Agent != "" {
		return name + "|" + ofProfile
	}
	return name + "|" + eachOf[t.Each]
}

// parseLimitName is the inverse of limitName; the agent of a profile is part of a bucket's name only.
func parseLimitName(name string) (bound.LimitTarget, error) {
	parts := strings.Split(name, "|")
	if len(parts) != 3 {
		return bound.LimitTarget{}, layout.ErrMalformed
	}
	encoded, star := strings.CutSuffix(parts[1], "*")
	key, err := layout.Decode(encoded)
	if star {
		key += "*"
	}
	t := bound.LimitTarget{Kind: parts[0], Key: key}
	for each, letter := range eachOf {
		if letter == parts[2] {
			t.Each = each
		}
	}
	return t, err
}

// LimitText is the terms of a limit, as the scripts read them: runs|starts|per|burst, and after another | an a if it adapts, and an s if it
// spans partitions.
func LimitText(l *bound.Limit, partitions int) string {
	text, letters := fmt.Sprintf("%d|%d|%d|%d", l.Concurrency, l.Rate, l.Per.Milliseconds(), l.Burst), ""
	if l.Adaptive {
		letters += adapts
	}
	if isSpanning(&l.About, partitions) {
		letters += Spans
	}
	if letters != "" {
		text += "|" + letters
	}
	return text
}

// The letters at the end of a limit.
const (
	adapts = "a"
	Spans  = "s"
)

// isSpanning reports whether tasks that are counted together may be in several partitions.
func isSpanning(t *bound.LimitTarget, partitions int) bool {
	return partitions > 1 && !t.OfOneAgent()
}

// parseLimit reads a limit.
func parseLimit(name, text string) (bound.Limit, error) {
	about, err := parseLimitName(name)
	l := bound.Limit{About: about}
	if text == "" { // it was lifted while a task still waits for it
		return l, err
	}
	parts := strings.Split(text, "|")
	if len(parts) == 5 {
		l.Adaptive, parts = strings.Contains(parts[4], adapts), parts[:4]
	}
	if len(parts) != 4 {
		return l, layout.ErrMalformed
	}
	var n [4]int
	for i, part := range parts {
		var one error
		n[i], one = strconv.Atoi(part)
		err = errors.Join(err, one)
	}
	l.Concurrency, l.Rate, l.Per, l.Burst = n[0], n[1], time.Duration(n[2])*time.Millisecond, n[3]
	return l, err
}

// Limit sets and lifts limits; see [store.Bounds].
func (s *Bounds) Limit(ctx context.Context, changes []bound.LimitChange) ([]store.Effect, error) {
	texts := make([]setting, len(changes))
	for i := range changes {
		texts[i].name = LimitName(changes[i].About)
		if !changes[i].Lift {
			texts[i].text = LimitText(&changes[i].Limit, len(s.db.Parts))
		}
	}
	return s.bound(ctx, texts)
}

// setting is a limit or a budget as the scripts know it: its name and its terms, empty to lift it.
type setting struct{ name, text string }

// bound sets and lifts limits and budgets.
func (s *Bounds) bound(ctx context.Context, changes []setting) ([]store.Effect, error) {
	out := make([]store.Effect, len(changes))
	for i, c := range changes {
		for p := range s.db.Parts {
			changed, err := s.limit(ctx, p, c)
			if err != nil {
				return nil, err
			}
			if changed {
				out[i].Code = store.EffectDone
			}
		}
	}
	return out, nil
}

// limit changes one limit in a partition, and goes through the lines behind it, page by page.
func (s *Bounds) limit(ctx context.Context, partition int, c setting) (changed bool, err error) {
	for cursor := "0"; ; {
		replies, err := s.db.Run(ctx, call.VerbControl, []call.Call{{Script: &s.db.Scripts.Limit, Partition: partition, Args: []any{
			c.name, c.text, cursor, bound.MostLimits,
		}}})
		if err != nil {
			return changed, err
		}
		if len(replies[0]) != 3 {
			return changed, call.Wrap(call.VerbControl, layout.ErrMalformed)
		}
		code := layout.Number(replies[0][1])
		if code < 0 {
			return changed, &store.InvalidError{Field: "limits", Reason: "and budgets are " + strconv.Itoa(bound.MostLimits) + " already: lift one before another is set"}
		}
		changed = changed || code == 1
		if cursor = layout.Text(replies[0][2]); cursor == "0" {
			return changed, nil
		}
	}
}

// mostCounted is how many buckets Limits looks at, of which most have one run.
const mostCounted = 1000

// Limits are the limits in force; see [store.Bounds].
func (s *Bounds) Limits(ctx context.Context) ([]bound.LimitUse, error) {
	pipe := s.db.Client.Pipeline()
	limits := pipe.Do(ctx, "HGETALL", s.db.Parts[0].Key("limits"))
	scans := map[string][]*redis.ScanCmd{}
	for _, p := range s.db.Parts {
		for _, name := range []string{"flight", "lines", "learned"} {
			scans[name] = append(scans[name], pipe.HScan(ctx, p.Key(name), 0, "", mostCounted))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, call.Wrap("read", err)
	}
	running, waiting := countsOf(scanned(scans["flight"])), countsOf(scanned(scans["lines"]))
	var out []bound.LimitUse
	for name, text := range layout.FieldsOf(limits) {
		if IsBudget(name) {
			continue
		}
		l, err := parseLimit(name, text)
		if err != nil {
			return nil, call.Wrap("read", layout.ErrMalformed)
		}
		use := bound.LimitUse{Limit: l, Running: running[name], Waiting: waiting[name]}
		if l.Adaptive {
			use.Learned = learnedOf(scanned(scans["learned"]), name)
		}
		out = append(out, use)
	}
	bound.SortLimits(out)
	return out, nil
}

// learnedOf is the learned state of a limit's buckets.
func learnedOf(fields []string, limit string) (all []bound.Learned) {
	for i := 0; i+1 < len(fields); i += 2 {
		if of, found := strings.CutPrefix(strings.TrimPrefix(fields[i], AtHome), limit+"|"); found {
			if l, ok := parseLearned(of, fields[i+1]); ok {
				all = append(all, l)
			}
		}
	}
	return all
}

// parseLearned reads the state that spend.lua keeps of a bucket: allow|gap|since|served|till|probe|heard.
func parseLearned(of, said string) (bound.Learned, bool) {
	parts := strings.Split(said, "|")
	if len(parts) != 7 {
		return bound.Learned{}, false
	}
	allow, err1 := strconv.ParseFloat(parts[0], 64)
	gap, err2 := strconv.ParseFloat(parts[1], 64)
	name, err3 := layout.Decode(of)
	if errors.Join(err1, err2, err3) != nil {
		return bound.Learned{}, false
	}
	l := bound.LearnedOf(allow, gap, moment.Millis(layout.Int(parts[4])), parts[5] != "0")
	l.Of = name
	return l, true
}

// AtHome is in front of the name of a bucket that spans partitions, where it is counted for all of them.
const AtHome = "^"

// scanned are the pages of some scans.
func scanned(scans []*redis.ScanCmd) (all []string) {
	for _, scan := range scans {
		fields, _ := scan.Val()
		all = append(all, fields...)
	}
	return all
}

// countsOf adds up the counts of buckets by their limits.
func countsOf(fields []string) map[string]int64 {
	out := map[string]int64{}
	for i := 0; i+1 < len(fields); i += 2 {
		if rule, _, ok := splitBucket(fields[i]); ok {
			out[rule] += layout.Int(fields[i+1])
		}
	}
	return out
}

// LineFields are the fields of a line from read.lua: bucket, text, flight, lines, rate, spent, end, learned, reserved.
type LineFields [9]string

// ParseLine reads the line that a task waits in.
func ParseLine(v any) (store.Line, error) {
	fields, _ := v.([]any)
	if len(fields) == 0 {
		return store.Line{}, nil
	}
	var of LineFields
	if len(fields) != len(of) {
		return store.Line{}, layout.ErrMalformed
	}
	for i := range fields {
		of[i] = layout.Text(fields[i])
	}
	rule, counted, ok := splitBucket(of[0])
	if !ok {
		return store.Line{}, layout.ErrMalformed
	}
	if IsBudget(rule) {
		return parseBudgetLine(rule, counted, of)
	}
	who, err := layout.Decode(counted)
	if err != nil {
		return store.Line{}, layout.ErrMalformed
	}
	l, err := parseLimit(rule, of[1])
	if strings.HasSuffix(rule, "|"+ofProfile) {
		l.About.Agent = who
	}
	line := store.Line{Limit: bound.LimitUse{Limit: l, Running: layout.Int(of[2]), Waiting: layout.Int(of[3])}, Of: who}
	line.StartAt = nextStart(&line, of[4], of[7])
	return line, err
}

// nextStart is when there is room for another start, by when the bucket would be empty, and what it has learned, which it adds to the line.
func nextStart(line *store.Line, empties, knows string) (at moment.Millis) {
	l := &line.Limit
	empty, notNumber := strconv.ParseFloat(empties, 64)
	if notNumber == nil && l.Rate > 0 {
		gap := float64(l.Per.Milliseconds()) / float64(l.Rate)
		at = moment.Millis(math.Ceil(empty - gap*float64(l.Burst)))
	}
	if learned, ok := parseLearned("", knows); l.Adaptive && ok {
		l.Learned, at = []bound.Learned{learned}, learned.HeldUntil
		if notNumber == nil && learned.PerMinute > 0 {
			at = max(at, moment.Millis(math.Ceil(empty))-bound.MadeUp)
		}
	}
	if l.Concurrency > 0 && l.Running >= int64(l.Concurrency) {
		at = 0 // a run has to end first
	}
	return at
}
