package schedule

// Hours that are repeated when clocks are set back: wildcard hours run in both.

import "time"

// nextRepeated is the first match in the second pass of hours that are repeated, if it comes before the next match of all
// others and the minutes follow real time; else the zero time.
// With a star in the minutes somebody wants "every n minutes", also in the hour that comes again.
func (c *Cron) nextRepeated(after, next time.Time) time.Time {
	if !c.repeats || next.IsZero() {
		return time.Time{}
	}
	for at := after.Add(time.Second); at.Before(next); {
		start, end := stretch(at)
		if found := c.secondPass(at, start); found.Before(next) && !found.IsZero() {
			return found
		}
		if end.IsZero() {
			break
		}
		at = end
	}
	return time.Time{}
}

// secondPass is the first match at or after a time that lies in the hours which are repeated since start, when the clocks
// went back; the zero time if there is none.
func (c *Cron) secondPass(at, start time.Time) time.Time {
	if start.IsZero() {
		return time.Time{}
	}
	over := civilOf(start.Add(-time.Second)) + 1 // the local time that is new again
	local := civilOf(at)
	found, ok := c.nextCivil(local)
	if local >= over || !ok || found >= over {
		return time.Time{}
	}
	return at.Add(time.Duration(found-local) * time.Second)
}

// stretch is from when until when the offset of a zone holds. ZoneBounds ends that of the last day of a leap year at its
// beginning, from 2038 on: a day later it is right again, and in between there is no change.
// The machine's zone database is not touched: the fault is in how Go extends the last rule.
func stretch(at time.Time) (start, end time.Time) {
	start, end = at.ZoneBounds()
	if !end.IsZero() && !end.After(at) {
		end = at.AddDate(0, 0, 1)
	}
	return start, end
}
