package layout

// The bytes of records and arguments, as the scripts pack and unpack them.

import (
	"crypto/sha1" //nolint:gosec // what Redis scripts have to compare texts by; nothing is secured by it
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// seqLen is the length of the sequence number that submit.lua puts in front of a record.
// Seven bytes hold 56 bits: ticks of 1/1024 ms until about the year 4200.
const seqLen = 7

// clockUnit is how many numbers the partition's hybrid clock has for a millisecond (layout.lua, ticks).
const clockUnit = 1024

// Record is a task as submit.lua stores it: level, id, kind, key, body (layout.lua, live).
// Its parts are found by their lengths, which come first: the script reads
// kind and id without unpacking the body.
func Record(level store.Level, id, kind, key string, body []byte) []byte {
	return AppendRecord(make([]byte, 0, 6+len(id)+len(kind)+len(key)+len(body)), level, id, kind, key, body)
}

// AppendRecord is Record, behind what is there already.
func AppendRecord(b []byte, level store.Level, id, kind, key string, body []byte) []byte {
	// Only the key is encoded here: the scripts use it as a part of a
	// scope, where it must not have a colon.
	key = Encode(key)
	b = append(b, '0'+byte(level))                        //nolint:gosec // 1 to 3
	b = binary.BigEndian.AppendUint16(b, uint16(len(id))) //nolint:gosec // ids are bounded by core
	b = append(b, id...)
	b = append(b, byte(len(kind))) //nolint:gosec // kinds are bounded by core
	b = append(b, kind...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(key))) //nolint:gosec // keys are bounded by core
	b = append(b, key...)
	return append(b, body...)
}

// Weight is the weight of so many bytes, in KiB, as layout.lua has it: small texts weigh nothing.
// They are bounded by the number of tasks. Counting them in bytes
// too would cost each submit a write.
func Weight(n int) int {
	if n < 4<<10 {
		return 0
	}
	return n >> 10
}

// Lengthened appends texts, each after its length, as the scripts unpack them.
func Lengthened(b []byte, texts ...string) []byte {
	for _, s := range texts {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s))) //nolint:gosec // bounded by core
		b = append(b, s...)
	}
	return b
}

// live is a record with its sequence number, taken apart.
// It is what a reader needs to show a task; a claim has a shorter way of its own.
type live struct {
	Submitted moment.Millis
	Level     store.Level
	ID, Kind  string
	Key       string
	Body      []byte
}

// ErrMalformed never names the record: it may hold anything that another
// program wrote, and belongs in no log.
var ErrMalformed = errors.New("a record in Redis is malformed: another program may have written it")

// ParseLive checks each length before it cuts, as the bytes may be those of another program.
func ParseLive(s string) (live, error) {
	// The sequence number, one byte of level, and two of the id's length.
	const head = seqLen + 3
	if len(s) < head {
		return live{}, ErrMalformed
	}
	var seq uint64
	for i := range seqLen {
		seq = seq<<8 | uint64(s[i])
	}
	idEnd := head + int(s[seqLen+1])<<8 + int(s[seqLen+2])
	if len(s) <= idEnd {
		return live{}, ErrMalformed
	}
	kindEnd := idEnd + 1 + int(s[idEnd])
	if len(s) < kindEnd+2 {
		return live{}, ErrMalformed
	}
	keyEnd := kindEnd + 2 + int(s[kindEnd])<<8 + int(s[kindEnd+1])
	if len(s) < keyEnd {
		return live{}, ErrMalformed
	}
	key, err := Decode(s[kindEnd+2 : keyEnd])
	if err != nil {
		return live{}, ErrMalformed
	}
	return live{
		Submitted: moment.Millis(seq / clockUnit),
		Level:     store.Level(s[seqLen] - '0'),
		ID:        s[head:idEnd],
		Kind:      s[idEnd+1 : kindEnd],
		Key:       key,
		Body:      Data(s[keyEnd:]),
	}, nil
}

// since precedes the time when a task last changed, in a state after the crash counter, and numbered the same with the fence and the number of
// the state behind it; see layout.lua.
const (
	since    = "=\x06"
	numbered = "=\x13"
)

// ParseState takes the crash counter off a state, and when its task has changed; zero if that is not there.
// The counter is a single byte, so it stops growing at 255. A task is dead long before that.
func ParseState(s string) (crashes int, changed moment.Millis, state []byte) {
	const msLen, numberedLen = 6, 19
	if s == "" {
		return 0, 0, nil
	}
	rest, ok := strings.CutPrefix(s[1:], since)
	skip := msLen
	if !ok {
		rest, ok = strings.CutPrefix(s[1:], numbered)
		skip = numberedLen
	}
	if !ok || len(rest) < skip {
		return int(s[0]), 0, Data(s[1:])
	}
	ms := binary.BigEndian.Uint64([]byte("\x00\x00" + rest[:msLen]))
	return int(s[0]), moment.Millis(ms & math.MaxInt64), Data(rest[skip:])
}

// ClaimedAt is when a claim was made; zero for none.
func ClaimedAt(fence store.Fence) moment.Millis { return moment.Millis(fence / clockUnit) }

// StoredState is a state as Redis holds it: settling clears the crash counter.
// It is nil for a state that is nil, which the scripts take as "delete it":
// small tasks have no state at all.
func StoredState(state []byte) []byte { return AppendState(nil, state) }

// StateArg is the new state of a settlement, after a 1 in place of its crashes if these stay counted.
func StateArg(r *store.Settlement) []byte {
	state := StoredState(r.State)
	if r.Unrun && len(state) > 0 {
		state[0] = 1
	}
	return state
}

// AppendState is StoredState, behind what is there already.
func AppendState(b, state []byte) []byte {
	if state == nil {
		return b
	}
	return append(append(b, 0), state...)
}

// Version of a live task as the scripts work it out: it changes whenever the task or its state does.
// It leaves out the sequence number, the crash counter and when it has changed: none is part of what an operator saw. It
// only has to differ, so SHA-1, which Lua in Redis has built in, is good enough.
func Version(live, state string) string {
	_, _, opaque := ParseState(state)
	sum := sha1.Sum([]byte(live[seqLen:] + "\x00" + string(opaque))) //nolint:gosec // not a secret
	return hex.EncodeToString(sum[:])
}

// ParseFinished takes a finished record apart: verb, time of the end, core's record.
func ParseFinished(s string) (store.Verb, moment.Millis, []byte, error) {
	// One byte of verb and 13 digits of ms.
	const head = 14
	if len(s) < head {
		return 0, 0, nil, ErrMalformed
	}
	at, err := strconv.ParseInt(s[1:head], 10, 64)
	if err != nil {
		return 0, 0, nil, ErrMalformed
	}
	return store.Verb(s[0]), moment.Millis(at), Data(s[head:]), nil
}

// Data is opaque bytes of a reply; nil for none.
func Data(s string) []byte {
	// Nil and empty are the same in Redis. They must be the same here, or
	// memstore would give another answer.
	if s == "" {
		return nil
	}
	return []byte(s)
}

// DueArg is a time as the scripts take it: ms, or minus a delay in ms.
func DueArg(w moment.When) string {
	// A time at 0 is no time at all: the delay counts then, also one of
	// zero, which is "now" by Redis' clock.
	if w.At != 0 {
		return strconv.FormatInt(int64(w.At), 10)
	}
	return strconv.FormatInt(-max(w.After.Milliseconds(), 0), 10)
}

// Millis reads a time from a reply: an integer, a decimal string, or an empty string for none.
func Millis(v any) (moment.Millis, error) {
	switch v := v.(type) {
	case int64:
		return moment.Millis(v), nil
	case string:
		if v == "" {
			return 0, nil
		}
		// Scores of sorted sets come as decimal strings, with an exponent if they are large.
		f, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return 0, ErrMalformed
		}
		return moment.Millis(f), nil
	default:
		return 0, ErrMalformed
	}
}

// Text is a reply that is a string. Scripts return nothing else in such a place, or nil.
func Text(v any) string {
	s, _ := v.(string) // a nil reply is an empty string
	return s
}

// Number is a reply that is an integer.
func Number(v any) int64 {
	n, _ := v.(int64) // a nil reply is zero
	return n
}

// AllMillis are the times of a list; nil for an empty one.
func AllMillis(v any) ([]moment.Millis, error) {
	list, _ := v.([]any)
	if len(list) == 0 {
		return nil, nil
	}
	out := make([]moment.Millis, len(list))
	for i := range list {
		var err error
		if out[i], err = Millis(list[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}
