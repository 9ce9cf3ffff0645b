package main

import (
	"context"
	"encoding/json"
	"fmt"
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
}

// The levels of memory, each a roll-up of the one before.
const (
	segments = "segment"
	days     = "day"
	weeks    = "week"
	months   = "month"
)

func key(agent, level string) string { return "memory:" + level + ":" + agent }

// Add remembers a text. The same message again, as after a crash, changes nothing.
func (m *Memory) Add(ctx context.Context, agent string, e Entry) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return m.Redis.ZAdd(ctx, key(agent, segments), redis.Z{Score: float64(e.At.UnixMilli()), Member: data}).Err()
}

// Query returns what is remembered that has a word of the question, newest first.
func (m *Memory) Query(ctx context.Context, agent, question string, most int) ([]Entry, error) {
	var found []Entry
	asked := words(question)
	for _, level := range []string{segments, days, weeks, months} {
		entries, err := m.between(ctx, agent, level, time.Time{}, m.Now())
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

func mentions(text string, asked []string) bool {
	text = strings.ToLower(text)
	for _, w := range asked {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// RollUp summarises each whole period of one level into the next, unless it is younger than minAge or done already. It
// returns how many summaries it made. Doing it twice makes nothing twice: a period has one place.
func (m *Memory) RollUp(ctx context.Context, agent, from, to string, minAge time.Duration) (int, error) {
	until := startOf(to, m.Now().Add(-minAge))
	entries, err := m.between(ctx, agent, from, time.Time{}, until)
	if err != nil {
		return 0, err
	}
	byPeriod := map[time.Time][]string{}
	for _, e := range entries {
		at := startOf(to, e.At)
		byPeriod[at] = append(byPeriod[at], e.Text)
	}
	made := 0
	for at, texts := range byPeriod {
		data, err := json.Marshal(Entry{At: at, Text: m.Sum.Summarise(texts, 3)})
		if err != nil {
			return made, err
		}
		score := strconv.FormatInt(at.UnixMilli(), 10)
		_, err = m.Redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.ZRemRangeByScore(ctx, key(agent, to), score, score)
			p.ZAdd(ctx, key(agent, to), redis.Z{Score: float64(at.UnixMilli()), Member: data})
			return nil
		})
		if err != nil {
			return made, err
		}
		made++
	}
	return made, nil
}

// Compact forgets segments, days and weeks that are older than their summaries make needless. It returns how many.
func (m *Memory) Compact(ctx context.Context, agent string) (int64, error) {
	var dropped int64
	for level, keep := range map[string]time.Duration{segments: 30 * 24 * time.Hour, days: 180 * 24 * time.Hour, weeks: 5 * 365 * 24 * time.Hour} {
		before := m.Now().Add(-keep).UnixMilli()
		n, err := m.Redis.ZRemRangeByScore(ctx, key(agent, level), "-inf", fmt.Sprintf("(%d", before)).Result()
		if err != nil {
			return dropped, err
		}
		dropped += n
	}
	return dropped, nil
}

// Level returns the entries of a level, oldest first.
func (m *Memory) Level(ctx context.Context, agent, level string) ([]Entry, error) {
	return m.between(ctx, agent, level, time.Time{}, m.Now())
}

// between are the entries of a level from one time up to, but not, another.
func (m *Memory) between(ctx context.Context, agent, level string, from, to time.Time) ([]Entry, error) {
	least := "-inf"
	if !from.IsZero() {
		least = strconv.FormatInt(from.UnixMilli(), 10)
	}
	found, err := m.Redis.ZRangeByScore(ctx, key(agent, level), &redis.ZRangeBy{Min: least, Max: fmt.Sprintf("(%d", to.UnixMilli())}).Result()
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(found))
	for i, text := range found {
		if err := json.Unmarshal([]byte(text), &entries[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", key(agent, level), err)
		}
	}
	return entries, nil
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
