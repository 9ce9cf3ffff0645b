package memstore

// Adapt: how an adaptive limit learns. Also the reference for learn in spend.lua.

import (
	"math"

	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// The constants of spend.lua.
const (
	probeWanted = 1
	probeOut    = 2
	margin      = 103
	long        = 120_000
	faster      = 12_000_000.0
	mostFaster  = 0.5
	trust       = 600_000.0
	minute      = 60_000.0
)

// knowledge is what is known of a bucket that adapts: how many runs at once, ms between two starts or 0, since when served runs have been
// counted, how many, until when nothing starts, whether one is to go first, and when it last had news.
type knowledge struct {
	allow, gap  float64
	since       moment.Millis
	served      float64
	till, heard moment.Millis
	probe       int
}

// learned is the knowledge of a bucket; nil if it does not adapt, or has not been used.
func (b *bucket) learned() *knowledge {
	if !b.rule.limit.Adaptive {
		return nil
	}
	return b.knows
}

// started counts a start.
func (b *bucket) started(now moment.Millis) {
	if b.knows == nil {
		b.knows = &knowledge{allow: 1, since: now, heard: now}
	}
	if b.knows.probe == probeWanted {
		b.knows.probe = probeOut
	}
}

// unprobed lets another run be the first that asks again, after one that has found nothing out.
func (b *bucket) unprobed() {
	if b.knows != nil && b.knows.probe == probeOut {
		b.knows.probe = probeWanted
	}
}

// learn notes that a run was served, or, with a wait, asked to come back after it.
func (u *used) learn(wait float64, now moment.Millis) {
	k := u.knows
	if k == nil {
		return
	}
	if wait > 0 {
		k.refuse(now, now+moment.Millis(wait))
	} else {
		k.serve(u, now)
	}
	k.heard = now
}

func (k *knowledge) refuse(now, till moment.Millis) {
	if now >= k.till { // otherwise it is of those that were under way
		k.allow, k.probe = max(1, k.allow/2), probeWanted
	}
	k.till = max(k.till, till)
}

// paced is the pace after a refusal, known once a run is served again.
func (k *knowledge) paced() float64 {
	if k.served > 0 && (k.gap == 0 || k.till-k.since < long) {
		return float64(k.till-k.since) / k.served * margin / 100
	}
	return k.gap * margin / 100
}

func (k *knowledge) serve(u *used, now moment.Millis) {
	if now < k.till {
		k.served++
		return
	}
	if k.probe == probeOut {
		k.gap, k.since, k.served, k.probe = k.paced(), k.till, 0, 0
	}
	k.served++
	if float64(u.runs) >= math.Floor(k.allow) {
		if k.allow += 1 / k.allow; u.rule.limit.Concurrency > 0 {
			k.allow = min(float64(u.rule.limit.Concurrency), k.allow)
		}
	}
	if k.gap > 0 && u.empty > float64(now) {
		ms := min(max(float64(now-k.heard), 0), minute)
		k.gap *= 1 - min(ms/faster*(1+max(float64(now-k.since), 0)/trust), mostFaster)
	}
}

// learned is the knowledge in the form that callers read.
func (k *knowledge) learned(of string) bound.Learned {
	l := bound.LearnedOf(k.allow, k.gap, k.till, k.probe != 0)
	l.Of = of
	return l
}
