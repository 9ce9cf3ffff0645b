package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Memory is what an agent remembers, in Redis: what was said as segments, and summaries of days, weeks and months. Each
// level is a sorted set by time, so that reading a span costs what is in it.
type Memory struct {
	Redis redis.UniversalClient
	Sum   Summariser
	Now   func() time.Time
}

// Entry is one thing remembered.
type Entry struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
	Of   string    `json:"of,omitempty"` // of a summary: what it was made of, so that it is not made again
}

// Answer is a short text, and what it was made from.
type Answer struct {
	Text string  `json:"text"`
	From []Entry `json:"from"`
}

// The levels of memory, each a roll-up of the one before.
const (
	segments = "segment"
	days     = "day"
	weeks    = "week"
	months   = "month"
)

// rollUp is the step from one level to the next, and how long the entries of the first are kept after it.
// Each level is kept longer than the one below, as it is smaller.
type rollUp struct {
	from, to string
	keep     time.Duration
}

// day is a day in UTC, where all have the same length.
const day = 24 * time.Hour

var rollUps = []rollUp{{segments, days, 30 * day}, {days, weeks, 180 * day}, {weeks, months, 5 * 365 * day}}

// key is the sorted set of a level.
func key(agent, level string) string { return "memory:" + level + ":" + agent }

// Add remembers a text. The same message again, as after a crash, changes nothing.
func (m *Memory) Add(ctx context.Context, agent string, e Entry) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return m.Redis.ZAdd(ctx, key(agent, segments), redis.Z{Score: float64(e.At.UnixMilli()), Member: data}).Err()
}

// Read remembers each sentence of a longer text.
func (m *Memory) Read(ctx context.Context, agent string, e Entry) error {
	for i, text := range sentences(e.Text) {
		at := e.At.Add(time.Duration(i) * time.Millisecond) // which keeps their order
		if err := m.Add(ctx, agent, Entry{At: at, Text: text + "."}); err != nil {
			return err
		}
	}
	return nil
}

// Correct replaces what was said at a time. The next roll-up summarises it again.
func (m *Memory) Correct(ctx context.Context, agent string, e Entry) error {
	return m.put(ctx, agent, segments, e)
}

// put makes an entry the only one of its time.
func (m *Memory) put(ctx context.Context, agent, level string, e Entry) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	score := strconv.FormatInt(e.At.UnixMilli(), 10)
	_, err = m.Redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.ZRemRangeByScore(ctx, key(agent, level), score, score)
		p.ZAdd(ctx, key(agent, level), redis.Z{Score: float64(e.At.UnixMilli()), Member: data})
		return nil
	})
	return err
}

// Answer sums up what is remembered about a question.
func (m *Memory) Answer(ctx context.Context, agent, question string) (Answer, error) {
	found, err := m.Query(ctx, agent, question, 5)
	if err != nil {
		return Answer{}, err
	}
	var texts []string
	asked := words(question)
	for i := range found {
		for _, s := range sentences(found[i].Text) {
			if mentions(s, asked) {
				texts = append(texts, s)
			}
		}
	}
	text, err := m.Sum.Summarise(ctx, texts, 1)
	return Answer{Text: text, From: found}, err
}

// Query returns what is remembered that has a word of the question, newest first.
func (m *Memory) Query(ctx context.Context, agent, question string, most int) ([]Entry, error) {
	var found []Entry
	asked := words(question)
	for _, level := range []string{segments, days, weeks, months} {
		entries, err := m.before(ctx, agent, level, m.Now())
		if err != nil {
			return nil, err
		}
		for i := len(entries) - 1; i >= 0 && len(found) < most; i-- {
			if mentions(entries[i].Text, asked) {
				found = append(found, entries[i])
			}
		}
	}
	return found, nil
}

// mentions reports whether a text has one of the words.
func mentions(text string, asked []string) bool {
	text = strings.ToLower(text)
	for _, w := range asked {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// RollUp summarises each whole period of one level into the next, oldest first, unless it is younger than minAge or done
// already. It returns how many summaries it made. After a failure the next call continues where this one ended.
func (m *Memory) RollUp(ctx context.Context, agent string, step rollUp, minAge time.Duration) (int, error) {
	now := m.Now()
	entries, err := m.before(ctx, agent, step.from, startOf(step.to, now.Add(-minAge)))
	if err != nil {
		return 0, err
	}
	summaries, err := m.Level(ctx, agent, step.to)
	if err != nil {
		return 0, err
	}
	done := map[time.Time]Entry{}
	for _, s := range summaries {
		done[s.At.UTC()] = s
	}
	forgotten := startOf(step.to, now.Add(-step.keep))
	made := 0
	for at, texts := range periods(step.to, entries) {
		of := nameOf(texts)
		old, ok := done[at]
		if ok && old.Of == of {
			continue
		}
		if ok && at.Before(forgotten) { // the summary knows more than what is left: what was said late is added to it
			texts = append([]string{old.Text}, texts...)
		}
		text, err := m.Sum.Summarise(ctx, texts, 3)
		if err != nil {
			return made, err
		}
		if err := m.put(ctx, agent, step.to, Entry{At: at, Text: text, Of: of}); err != nil {
			return made, err
		}
		made++
	}
	return made, nil
}

// nameOf tells texts from others, so that a summary knows what it was made of.
// Sixteen hexadecimal digits are enough to tell a few texts apart.
func nameOf(texts []string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// periods are the texts of each period that entries lie in, in order.
func periods(level string, entries []Entry) iter.Seq2[time.Time, []string] {
	return func(yield func(time.Time, []string) bool) {
		for len(entries) > 0 {
			at := startOf(level, entries[0].At)
			var texts []string
			for len(entries) > 0 && startOf(level, entries[0].At).Equal(at) {
				texts = append(texts, entries[0].Text)
				entries = entries[1:]
			}
			if !yield(at, texts) {
				return
			}
		}
	}
}

// Compact forgets segments, days and weeks that are old and summarised, whole periods at a time. It returns how many it has
// dropped.
func (m *Memory) Compact(ctx context.Context, agent string) (int64, error) {
	var dropped int64
	for _, step := range rollUps {
		summaries, err := m.before(ctx, agent, step.to, startOf(step.to, m.Now().Add(-step.keep)))
		if err != nil {
			return dropped, err
		}
		for _, s := range summaries {
			n, err := m.drop(ctx, agent, step, s)
			if dropped += n; err != nil {
				return dropped, err
			}
		}
	}
	return dropped, nil
}

// drop forgets what a summary was made of. If more was said since, all stays until the summary knows it.
func (m *Memory) drop(ctx context.Context, agent string, step rollUp, summary Entry) (int64, error) {
	entries, members, err := m.between(ctx, agent, step.from, strconv.FormatInt(summary.At.UnixMilli(), 10), endOf(step.to, summary.At))
	if err != nil {
		return 0, err
	}
	for _, texts := range periods(step.to, entries) { // one, or none
		if nameOf(texts) == summary.Of {
			return m.Redis.ZRem(ctx, key(agent, step.from), members).Result()
		}
	}
	return 0, nil
}

// Level returns the entries of a level, oldest first.
func (m *Memory) Level(ctx context.Context, agent, level string) ([]Entry, error) {
	return m.before(ctx, agent, level, m.Now())
}

// before are the entries of a level from before a time, oldest first.
func (m *Memory) before(ctx context.Context, agent, level string, to time.Time) ([]Entry, error) {
	entries, _, err := m.between(ctx, agent, level, "-inf", to)
	return entries, err
}

// between are the entries of a level from a score to before a time, oldest first, and as they are stored.
func (m *Memory) between(ctx context.Context, agent, level, from string, to time.Time) ([]Entry, []string, error) {
	found, err := m.Redis.ZRangeByScore(ctx, key(agent, level), &redis.ZRangeBy{Min: from, Max: fmt.Sprintf("(%d", to.UnixMilli())}).Result()
	if err != nil {
		return nil, nil, err
	}
	entries := make([]Entry, len(found))
	for i, text := range found {
		if err := json.Unmarshal([]byte(text), &entries[i]); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", key(agent, level), err)
		}
	}
	return entries, found, nil
}

// startOf is when the period began that a time lies in: a day, a week from Monday, or a month, in UTC.
func startOf(level string, t time.Time) time.Time {
	y, mo, d := t.UTC().Date()
	switch level {
	case weeks:
		return time.Date(y, mo, d-(int(t.UTC().Weekday())+6)%7, 0, 0, 0, 0, time.UTC)
	case months:
		return time.Date(y, mo, 1, 0, 0, 0, 0, time.UTC)
	default:
		return time.Date(y, mo, d, 0, 0, 0, 0, time.UTC)
	}
}

// endOf is when a period ends that began at a time.
func endOf(level string, start time.Time) time.Time {
	switch level {
	case weeks:
		return start.AddDate(0, 0, 7)
	case months:
		return start.AddDate(0, 1, 0)
	default:
		return start.AddDate(0, 0, 1)
	}
}
