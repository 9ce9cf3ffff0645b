package redisstore

// Settlements that the plain script can carry out.

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// plainSettlement reports whether the plain script can carry a settlement out, as far as the settlement itself shows.
func plainSettlement(r *store.Settlement) bool {
	switch r.Verb {
	case store.VerbAgain, store.VerbComplete, store.VerbFail, store.VerbCancel:
	default:
		return false
	}
	return r.Group == "" && !r.Recurs && r.Await == nil && r.Hold == nil && r.Floor == nil && !r.Renewed && !r.Unrun &&
		layout.Weight(r.BodyLen) == 0 && layout.Weight(len(r.Record)) == 0 && r.Index < store.MaxClaim && r.Ref != ""
}

// claimRuns are the runs of one claim.
type claimRuns struct {
	fence   store.Fence
	indexes []byte
}

// kindSums are the sums that runs of a kind add to its counters.
type kindSums struct {
	kind                         string
	runs, ended                  int
	tallied                      uint32
	failed                       uint32
	types                        [4]uint32 // at, every, cron, touch
	took, least, most, lag, late uint64    // ms: together, shortest, longest; lag together, longest
	failures                     []byte
}

// add adds a run.
func (k *kindSums) add(r *store.Settlement) {
	k.runs++
	if r.Verb != store.VerbAgain {
		k.ended++
	}
	t := r.Tally
	if t == nil {
		return
	}
	took, lag := wholeMillis(t.Duration), wholeMillis(t.Lag)
	if k.tallied == 0 || took < k.least {
		k.least = took
	}
	k.tallied++
	k.took, k.most = k.took+took, max(k.most, took)
	k.lag, k.late = k.lag+lag, max(k.late, lag)
	k.types[scheduleIndex(t.Schedule)]++
	if t.Failed {
		k.failed++
		k.failures = layout.Lengthened(k.failures, string(t.Failure))
	}
}

// tally is the sums of the runs, as plainsettle.lua unpacks them; empty for nothing.
func (k *kindSums) tally() []byte {
	if k.tallied == 0 {
		return nil
	}
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 54), k.tallied)
	b = binary.BigEndian.AppendUint32(b, k.failed)
	for _, n := range k.types {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	for _, n := range [...]uint64{k.took, k.least, k.most, k.lag, k.late} {
		b = appendSix(b, n)
	}
	return b
}

func wholeMillis(d time.Duration) uint64 { return uint64(max(d.Milliseconds(), 0)) }

// scheduleIndex is the place of a type of schedule among those of kindSums.
func scheduleIndex(t store.ScheduleType) int {
	switch t {
	case store.ScheduleEvery:
		return 1
	case store.ScheduleCron:
		return 2
	case store.ScheduleActivity:
		return 3
	default:
		return 0
	}
}

// plainSettleCall is the call of plainsettle.lua for some runs of one partition, given by their places, which a claim of that
// partition follows or not. It puts members in the order of the script.
func (s *Store) plainSettleCall(runs []store.Settlement, members []int, followed bool) call.Call {
	claims, kinds := make([]claimRuns, 0, 4), make([]kindSums, 0, 2)
	var verbs [256]int
	again := order(runs, members)
	for _, i := range members {
		r := &runs[i]
		verbs[r.Verb]++
		claims = addRun(claims, &r.Run)
		kinds = addKind(kinds, r)
	}
	args := make(layout.Arguments, 0, 7+2*len(claims)+5*len(kinds)+5*len(members)).Number(int64(again))
	args = append(args,
		strconv.Itoa(verbs[store.VerbComplete])+"|"+strconv.Itoa(verbs[store.VerbFail])+"|"+strconv.Itoa(verbs[store.VerbCancel]))
	args = append(args.Number(s.config.Retention.Milliseconds()), s.config.kept(), plainQuietArg(runs, members))
	many := int64(len(claims))
	if followed {
		many = -many
	}
	args = append(args.Number(many), kindsArg(runs, members, kinds))
	for i := range claims {
		args = append(args, formatFence(claims[i].fence), string(claims[i].indexes))
	}
	for i := range kinds {
		k := &kinds[i]
		args = append(args, k.kind).Number(int64(k.runs)).Number(int64(k.ended))
		args = append(args, string(k.tally()), string(k.failures))
	}
	args = appendOutcomes(args, runs, members)
	return call.Call{Script: &s.db.Scripts.PlainSettle, Args: args.Pointers()}
}

// plainQuietArg is quietArg for plainsettle.lua, and behind it how runs were answered and what they have used, where they say so.
func plainQuietArg(runs []store.Settlement, members []int) string {
	b := append(make([]byte, 0, 64), cmp.Or(quietArg(runs, members), "0")...)
	for k, i := range members {
		if r := &runs[i]; r.Spent != nil {
			used, answer := spentArgs(r.Spent)
			b = strconv.AppendInt(append(b, '\n'), int64(k+1), 10)
			b = append(append(append(b, '|'), answer...), '|')
			b = append(b, strings.ReplaceAll(used, "\n", ",")...)
		}
	}
	return string(b)
}

// kindsArg is how many kinds some runs have, and of several, which of them each run has.
func kindsArg(runs []store.Settlement, members []int, kinds []kindSums) string {
	b := strconv.AppendInt(nil, int64(len(kinds)), 10)
	if len(kinds) == 1 {
		return string(b)
	}
	b = append(b, '|')
	for _, i := range members {
		b = append(b, byte(1+slices.IndexFunc(kinds, func(k kindSums) bool { return k.kind == runs[i].Kind }))) //nolint:gosec // a call has largestSettle runs at most
	}
	return string(b)
}

// appendOutcomes appends the outcome of each run. The texts are made in one piece: each by itself would be an allocation or two.
func appendOutcomes(args layout.Arguments, runs []store.Settlement, members []int) layout.Arguments {
	size := 0
	for _, i := range members {
		r := &runs[i]
		size += len(r.Ref) + len(r.ID) + 1 + max(len(r.State)+1, recordHeadLen+len(r.ID)+len(r.Record))
	}
	made := layout.Texts{Bytes: make([]byte, 0, size), Ends: make([]int, 0, 3*len(members))}
	for _, i := range members {
		r := &runs[i]
		made.Bytes = append(append(append(made.Bytes, layout.AgentRef(&r.Run)...), ':'), r.ID...)
		made.End()
		if r.Verb == store.VerbAgain {
			made.Bytes = layout.AppendState(made.Bytes, r.State)
		} else {
			made.Bytes = appendRecordHead(made.Bytes, r.ID, r.Verb)
			made.End()
			made.Bytes = append(made.Bytes, r.Record...)
		}
		made.End()
	}
	next := made.Reader()
	for _, i := range members {
		r := &runs[i]
		args = append(args, layout.AgentRef(&r.Run), next(), layout.PlaceOf(&r.Run))
		if r.Verb == store.VerbAgain {
			args = append(args, againArg(r.DueAgain()), next())
		} else {
			args = append(args, next(), next())
		}
	}
	return args
}

// againArg is dueArg for plainsettle.lua, which knows a delay by its minus.
func againArg(w moment.When) string {
	if due := layout.DueArg(w); due != "0" {
		return due
	}
	return "-0"
}

// order puts runs that are due again in front. It returns how many they are.
func order(runs []store.Settlement, members []int) int {
	ended := make([]int, 0, len(members))
	again := members[:0]
	for _, i := range members {
		if runs[i].Verb == store.VerbAgain {
			again = append(again, i)
		} else {
			ended = append(ended, i)
		}
	}
	n := len(again)
	copy(members[n:], ended)
	return n
}

// addRun adds the index of a run to those of its claim.
func addRun(claims []claimRuns, r *store.Run) []claimRuns {
	for i := range claims {
		if claims[i].fence == r.Fence {
			claims[i].indexes = append(claims[i].indexes, byte(r.Index)) //nolint:gosec // below store.MaxClaim
			return claims
		}
	}
	return append(claims, claimRuns{fence: r.Fence, indexes: append(make([]byte, 0, store.MaxClaim), byte(r.Index))}) //nolint:gosec // as above
}

// addKind adds a run to the sums of its kind.
func addKind(kinds []kindSums, r *store.Settlement) []kindSums {
	for i := range kinds {
		if kinds[i].kind == r.Kind {
			kinds[i].add(r)
			return kinds
		}
	}
	kinds = append(kinds, kindSums{kind: r.Kind})
	kinds[len(kinds)-1].add(r)
	return kinds
}

// recordHeadLen is how many bytes a head of a record has without the id.
const recordHeadLen = 3

// appendRecordHead appends the head of a record: the length of the id, the id, and the verb. The script puts the time between.
func appendRecordHead(b []byte, id string, verb store.Verb) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(min(len(id), math.MaxUint16)))
	return append(append(b, id...), byte(verb))
}

// settledPlainly is the outcome of a run that plainsettle.lua has settled, at a time of the store.
func settledPlainly(r *store.Settlement, now moment.Millis) store.Settled {
	switch {
	case r.Verb != store.VerbAgain:
		return store.Settled{}
	case r.Due.At != 0:
		return store.Settled{Due: r.Due.At}
	default:
		return store.Settled{Due: now + moment.Millis(r.DueAgain().After.Milliseconds())}
	}
}
