package horizon

// How processes of one store keep out of each other's way: all of them know when something falls due, and one claim is enough.

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

const (
	// behindLoser is how long after its time a process asks for what falls due, if its last claim came too late. By then a look sees whether
	// others have taken it, for a tenth of what a claim costs.
	behindLoser = 4 * time.Millisecond
	// behindLoad is how much later it asks if all of its slots are in use, and so in proportion: who has less to do comes first. A quarter of
	// the slots outweighs the last claim.
	behindLoad = 16 * time.Millisecond
)

// asks is when it is worth asking for what is due in the partition: when it is, or a little later where others are likely to take it.
func (s *seen) asks() moment.Millis {
	at := s.due()
	if at == 0 || s.series == nil {
		return at
	}
	return at.Add(s.series.behind(s))
}

// asks is when it is worth asking the target; at once if it has never been asked.
func (t *Target) asks() moment.Millis {
	if t.asked.IsZero() && t.Agents != nil {
		return longAgo
	}
	return t.seen.asks()
}

// behind is how long after others this process asks for what falls due in a partition. Alone, or where nothing is known of others, nothing is gained by a
// wait. The mutex is held.
func (q *Series) behind(s *seen) (d time.Duration) {
	if q.others() <= 0 {
		return 0
	}
	// guard: loaded-waits
	d = time.Duration(q.slots.Load() * float64(behindLoad))
	// guard: loser-waits
	if s.lost {
		d += behindLoser
	}
	return d
}

// standBack notes what a look that was sent at a time, and answered at another by the store's clock, means for rivals: what it has just seen fall
// due is for those that come first, once. What has no time of its own, as it is due whenever that is asked, would be left to them for ever. The mutex is held.
func (t *Target) standBack(sent time.Time, now moment.Millis) {
	at := t.asks()
	// guard: waits-once
	if t.stood = t.overdue && at > now && !t.stood; t.stood {
		t.aside, t.looked = sent.Add(at.Sub(now)), false // they have not come yet
	}
}
