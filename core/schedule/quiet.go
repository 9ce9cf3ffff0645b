package schedule

// Quiet hours: local times at which nothing of an agent is to start, and when they end.

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// QuietHours are a stretch of each of some days in which nothing starts, by the clock on the wall: from a time until another, on the
// next day if that is earlier. With From and To the same it is a day long.
type QuietHours struct {
	From string `json:"from"` // "22:00"
	To   string `json:"to"`   // "07:00"; "24:00" is midnight
	// Days are those on which it begins, such as "mon", "sat" or "mon-fri"; every day if empty.
	Days []string `json:"days,omitempty"`
}

// MostQuiet is how many QuietHours go together.
const MostQuiet = 50

// Quiet says which times of a zone are quiet. The clock on the wall decides: an hour that occurs twice is quiet both times or not at all,
// and one that does not exist is neither. A Quiet never changes, so that it is safe for concurrent use. A nil one has no quiet times.
type Quiet struct {
	location *time.Location
	spans    []span // in order, none touches the next
}

// span is a part of the local week, in seconds since Monday 00:00: from the first up to but without the second.
type span struct{ from, to int }

const (
	day  = 24 * 60 * 60
	week = 7 * day
	// monday is the first midnight of a Monday in civil time, which counts from a Thursday.
	monday civil = 4 * day
)

// ParseQuiet reads quiet hours of an IANA zone; the empty zone is UTC. It refuses what is malformed, a zone that it does not know, and
// hours that leave no minute of the week. The error is a *[ParseError].
func ParseQuiet(hours []QuietHours, zone string) (*Quiet, error) {
	location, err := LoadZone(zone)
	if err != nil {
		return nil, err
	}
	if len(hours) > MostQuiet {
		return nil, refused("quiet", "has %d entries: the limit is %d", len(hours), MostQuiet)
	}
	var all []span
	for i := range hours {
		some, err := hours[i].spans(fmt.Sprintf("quiet[%d]", i))
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	q := &Quiet{location: location, spans: joined(all)}
	if slices.Equal(q.spans, []span{{0, week}}) {
		return nil, refused("quiet", "leaves no time at which tasks may start: pause the agent instead, or leave a minute of the week out")
	}
	return q, nil
}

// Zone is the zone whose clock decides.
func (q *Quiet) Zone() string { return q.location.String() }

// spans are the parts of the week that are quiet.
func (h *QuietHours) spans(field string) ([]span, error) {
	from, err := clockOf(field+".from", h.From, "23:59")
	if err != nil {
		return nil, err
	}
	to, err := clockOf(field+".to", h.To, "24:00")
	if err != nil {
		return nil, err
	}
	days, err := daysOf(field+".days", h.Days)
	if err != nil {
		return nil, err
	}
	if to <= from {
		to += day
	}
	var out []span
	for d := range 7 {
		if !days[d] {
			continue
		}
		begin, end := d*day+from, d*day+to
		if end > week { // the night from Sunday to Monday is in two parts
			out = append(out, span{0, end - week})
		}
		out = append(out, span{begin, min(end, week)})
	}
	return out, nil
}

// clockOf reads a time of day such as 07:00, as seconds.
func clockOf(field, text, last string) (int, error) {
	h, m, ok := strings.Cut(text, ":")
	hour, err1 := strconv.ParseUint(h, 10, 8)
	minute, err2 := strconv.ParseUint(m, 10, 8)
	if !ok || err1 != nil || err2 != nil || len(h) != 2 || len(m) != 2 || minute > 59 || text > last {
		return 0, refused(field, "must be a time of day from 00:00 to %s, such as 07:00, not %q", last, text)
	}
	return int(hour*60+minute) * 60, nil
}

// weekdays are the names of the days, the first of the week in front.
var weekdays = []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}

// daysOf reads days of the week; none at all are all.
func daysOf(field string, names []string) (days [7]bool, err error) {
	if len(names) > 7 {
		return days, refused(field, "has %d entries: the limit is 7", len(names))
	}
	for _, name := range names {
		first, last, ranged := strings.Cut(strings.ToLower(name), "-")
		if !ranged {
			last = first
		}
		from, to := slices.Index(weekdays, first), slices.Index(weekdays, last)
		if from < 0 || to < 0 {
			return days, refused(field, "must have days such as %q or %q, not %q", "mon", "sat-sun", name)
		}
		for d := from; ; d = (d + 1) % 7 {
			days[d] = true
			if d == to {
				break
			}
		}
	}
	if len(names) == 0 {
		days = [7]bool{true, true, true, true, true, true, true}
	}
	return days, nil
}

// joined are spans in order, with those that touch or overlap made one.
func joined(all []span) []span {
	sort.Slice(all, func(i, k int) bool { return all[i].from < all[k].from })
	var out []span
	for _, s := range all {
		if n := len(out) - 1; n >= 0 && s.from <= out[n].to {
			out[n].to = max(out[n].to, s.to)
			continue
		}
		out = append(out, s)
	}
	return out
}

// Until is the end of the quiet time that t is in: the first time at or after t that is not quiet, which is t itself if t is not.
func (q *Quiet) Until(t time.Time) time.Time {
	if q == nil || len(q.spans) == 0 {
		return t
	}
	at := t.In(q.location)
	// Within a stretch local time goes by as everywhere. Each step ends in another stretch, and a zone has a few in a year; the
	// free minute of a week may fall into a gap, but not week after week.
	for range mostChanges {
		free := q.left(civilOf(at))
		if free == 0 {
			break
		}
		end := at.Truncate(time.Second).Add(time.Duration(free) * time.Second)
		if _, change := stretch(at); !change.IsZero() && !end.Before(change) {
			at = change
			continue
		}
		at = end
	}
	if at.Equal(t) {
		return t
	}
	return at
}

// left is how many seconds of quiet time there still are at a local time; 0 if it is not quiet.
func (q *Quiet) left(local civil) int {
	pos := int((local - monday) % week)
	if pos < 0 {
		pos += week
	}
	i := sort.Search(len(q.spans), func(i int) bool { return q.spans[i].to > pos })
	if i == len(q.spans) || q.spans[i].from > pos {
		return 0
	}
	left := q.spans[i].to - pos
	if first := q.spans[0]; q.spans[i].to == week && first.from == 0 {
		left += first.to // it goes on through the night to Monday
	}
	return left
}
