package core

import (
	"encoding/json"
	"time"

	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// body is the part of a task that never changes, as it is stored.
type body struct {
	Payload     []byte
	Every       time.Duration
	From        From
	Cron, Zone  string
	DayMatch    schedule.DayMatch
	Gap         schedule.Gap
	Jitter      time.Duration
	Overlap     Overlap
	Misfire     Misfire
	PauseAfter  int
	MinInterval time.Duration
	SnoozeKey   string
	Parent      string       // the id of the recurring task of which this is one occurrence
	Occurrence  store.Millis // of that
	Activity    *activityRule
	MaxAttempts int
	Backoff     time.Duration
	Timeout     time.Duration
	Lease       time.Duration
	Group       string

	TraceID, Traceparent, SessionID string
	UserID, MemCubeID, UserName     string
	Info                            json.RawMessage
	Tags                            []string
}

// The fields of a stored body. Numbers are never used again.
const (
	bodyPayload = iota + 1
	bodyEvery
	bodyFromStart
	bodyMaxAttempts
	bodyBackoff
	bodyTimeout
	bodyLease
	bodyGroup
	bodyTraceID
	bodyTraceparent
	bodySessionID
	bodyUserID
	bodyMemCubeID
	bodyUserName
	bodyInfo
	bodyTag
	bodyCron
	bodyZone
	bodyMatchAll
	bodyGapSkip
	bodyJitter
	bodyOverlap
	bodyMisfire
	bodyPauseAfter
	bodyMinInterval
	bodySnoozeKey
	bodyParent
	bodyOccurrence
	bodyActivityDelay // present in every activity task
	bodyActivityMaxWait
	bodyActivityMaxFailures
)

func (b *body) encode() []byte {
	w := make(wire, 0, 32+len(b.Payload))
	w.bytes(bodyPayload, b.Payload)
	w.int(bodyEvery, b.Every.Milliseconds())
	if b.From == FromStart {
		w.int(bodyFromStart, 1)
	}
	w.str(bodyCron, b.Cron)
	w.str(bodyZone, b.Zone)
	if b.DayMatch == schedule.DayMatchAll {
		w.int(bodyMatchAll, 1)
	}
	if b.Gap == schedule.GapSkip {
		w.int(bodyGapSkip, 1)
	}
	w.int(bodyJitter, b.Jitter.Milliseconds())
	w.str(bodyOverlap, string(b.Overlap))
	w.str(bodyMisfire, string(b.Misfire))
	w.int(bodyPauseAfter, int64(b.PauseAfter))
	w.int(bodyMinInterval, b.MinInterval.Milliseconds())
	w.str(bodySnoozeKey, b.SnoozeKey)
	w.str(bodyParent, b.Parent)
	w.int(bodyOccurrence, int64(b.Occurrence))
	if a := b.Activity; a != nil {
		w.int(bodyActivityDelay, a.Delay.Milliseconds()+1) // zero is not written
		w.int(bodyActivityMaxFailures, int64(a.MaxFailures))
		if a.Debounce {
			w.int(bodyActivityMaxWait, a.MaxWait.Milliseconds()+1)
		}
	}
	w.int(bodyMaxAttempts, int64(b.MaxAttempts))
	w.int(bodyBackoff, b.Backoff.Milliseconds())
	w.int(bodyTimeout, b.Timeout.Milliseconds())
	w.int(bodyLease, b.Lease.Milliseconds())
	w.str(bodyGroup, b.Group)
	w.str(bodyTraceID, b.TraceID)
	w.str(bodyTraceparent, b.Traceparent)
	w.str(bodySessionID, b.SessionID)
	w.str(bodyUserID, b.UserID)
	w.str(bodyMemCubeID, b.MemCubeID)
	w.str(bodyUserName, b.UserName)
	w.bytes(bodyInfo, b.Info)
	for _, tag := range b.Tags {
		w.str(bodyTag, tag)
	}
	return w
}

func decodeBody(data []byte) (body, error) {
	var b body
	err := readWire(data, func(field uint64, v int64, s []byte) {
		ms := time.Duration(v) * time.Millisecond
		switch field {
		case bodyPayload:
			b.Payload = s
		case bodyEvery:
			b.Every = ms
		case bodyFromStart:
			b.From = FromStart
		case bodyMatchAll:
			b.DayMatch = schedule.DayMatchAll
		case bodyGapSkip:
			b.Gap = schedule.GapSkip
		case bodyJitter:
			b.Jitter = ms
		case bodyPauseAfter:
			b.PauseAfter = int(v)
		case bodyMinInterval:
			b.MinInterval = ms
		case bodyOccurrence:
			b.Occurrence = store.Millis(v)
		case bodyActivityDelay, bodyActivityMaxWait, bodyActivityMaxFailures:
			b.activity(field, v)
		case bodyMaxAttempts:
			b.MaxAttempts = int(v)
		case bodyBackoff:
			b.Backoff = ms
		case bodyTimeout:
			b.Timeout = ms
		case bodyLease:
			b.Lease = ms
		default:
			b.text(field, s)
		}
	})
	return b, err
}

func (b *body) activity(field uint64, v int64) {
	if b.Activity == nil {
		b.Activity = &activityRule{}
	}
	switch field {
	case bodyActivityDelay:
		b.Activity.Delay = time.Duration(v-1) * time.Millisecond
	case bodyActivityMaxWait:
		b.Activity.Debounce, b.Activity.MaxWait = true, time.Duration(v-1)*time.Millisecond
	case bodyActivityMaxFailures:
		b.Activity.MaxFailures = int(v)
	}
}

func (b *body) text(field uint64, s []byte) {
	switch field {
	case bodyGroup:
		b.Group = string(s)
	case bodyCron:
		b.Cron = string(s)
	case bodyZone:
		b.Zone = string(s)
	case bodyOverlap:
		b.Overlap = Overlap(s)
	case bodyMisfire:
		b.Misfire = Misfire(s)
	case bodySnoozeKey:
		b.SnoozeKey = string(s)
	case bodyParent:
		b.Parent = string(s)
	case bodyTraceID:
		b.TraceID = string(s)
	case bodyTraceparent:
		b.Traceparent = string(s)
	case bodySessionID:
		b.SessionID = string(s)
	case bodyUserID:
		b.UserID = string(s)
	case bodyMemCubeID:
		b.MemCubeID = string(s)
	case bodyUserName:
		b.UserName = string(s)
	case bodyInfo:
		b.Info = s
	case bodyTag:
		b.Tags = append(b.Tags, string(s))
	}
}
