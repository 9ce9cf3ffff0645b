package schedule_test

import (
	"archive/zip"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/schedule"
)

// oracle says when an expression of 5 fields fires, by looking at every minute. It shares nothing with the code under
// test: not the search, not the reading of fields, not the resolution of local times.
type oracle struct {
	fields [5]map[int]bool
	either bool // both day fields are restrictions
	fixed  bool // the hour field has neither * nor /
	again  bool // the minute field begins with *: repeated local times count twice
	skip   bool
	zone   *time.Location
}

func newOracle(t *testing.T, expr string, zone *time.Location, skip bool) *oracle {
	t.Helper()
	o := &oracle{skip: skip, zone: zone}
	parts := strings.Fields(expr)
	for i, bounds := range [][2]int{{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 6}} {
		o.fields[i] = map[int]bool{}
		for part := range strings.SplitSeq(parts[i], ",") {
			span, step, stepped := strings.Cut(part, "/")
			from, to, by := bounds[0], bounds[1], 1
			if span != "*" {
				low, high, ranged := strings.Cut(span, "-")
				from, _ = strconv.Atoi(low)
				switch {
				case ranged:
					to, _ = strconv.Atoi(high)
				case !stepped:
					to = from
				}
			}
			if stepped {
				by, _ = strconv.Atoi(step)
			}
			for v := from; v <= to; v += by {
				o.fields[i][v] = true
			}
		}
	}
	o.either = parts[2][0] != '*' && parts[4][0] != '*'
	o.fixed = !strings.ContainsAny(parts[1], "*/")
	o.again = parts[0][0] == '*'
	return o
}

// local is a local time, to the minute.
type local struct{ year, month, day, hour, minute int }

func localOf(t time.Time) local {
	return local{t.Year(), int(t.Month()), t.Day(), t.Hour(), t.Minute()}
}

func (l local) utc() time.Time {
	return time.Date(l.year, time.Month(l.month), l.day, l.hour, l.minute, 0, 0, time.UTC)
}

func (o *oracle) matches(l local) bool {
	day, weekday := o.fields[2][l.day], o.fields[4][int(l.utc().Weekday())]
	dayMatches := day && weekday
	if o.either {
		dayMatches = day || weekday
	}
	return o.fields[0][l.minute] && o.fields[1][l.hour] && o.fields[3][l.month] && dayMatches
}

// fires are all times within [from, to), minute by minute.
func (o *oracle) fires(from, to time.Time) []time.Time {
	var out []time.Time
	latest := localOf(from.Add(-48 * time.Hour).In(o.zone)).utc() // the latest local time so far
	for at := from.Add(-48 * time.Hour); at.Before(to); at = at.Add(time.Minute) {
		now := localOf(at.In(o.zone))
		wall := now.utc()
		fire := o.matches(now)
		if o.fixed {
			if !wall.After(latest) && !o.again {
				fire = false // these local times have all been
			}
			if !o.skip {
				for missing := latest.Add(time.Minute); missing.Before(wall); missing = missing.Add(time.Minute) {
					fire = fire || o.matches(localOf(missing))
				}
			}
		}
		if wall.After(latest) {
			latest = wall
		}
		if fire && !at.Before(from) {
			out = append(out, at)
		}
	}
	return out
}

// zones are the names of all zones that Go knows.
func zones(t *testing.T) []string {
	t.Helper()
	archive, err := zip.OpenReader(filepath.Join(runtime.GOROOT(), "lib", "time", "zoneinfo.zip")) //nolint:staticcheck // the toolchain that runs the test
	require.NoError(t, err)
	defer func() { _ = archive.Close() }()
	var names []string
	for _, f := range archive.File {
		if !strings.HasSuffix(f.Name, "/") {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return names
}

var oracleExpressions = []string{
	"30 2 * * *", "0 0 * * *", "*/10 0-3 * * *", "15 1 * * *", "*/7 * * * *", "30 */2 * * *", "0 2 1-15 * 0", "45 23 */2 * 1-5",
	"0 1,2,3 * 3,10,11 *", "59 1 * * 0,6", "5/25 2 28-31 * *", "* 1 * * *", "*/20 2 * * *", "*/7 0,1,2,3 * * *", "0,*/30 1-2 * * *",
}

// TestCronAgainstTheOracle compares Next with a minute-by-minute search, in every zone, around changes of its offset
// between 2000 and 2037 and at random times. DULY_CRON_CHECKS sets how many comparisons are wanted: `make cron-nightly`
// asks for a million.
func TestCronAgainstTheOracle(t *testing.T) {
	t.Parallel()
	want := int64(50_000)
	if s := os.Getenv("DULY_CRON_CHECKS"); s != "" {
		var err error
		want, err = strconv.ParseInt(s, 10, 64)
		require.NoError(t, err)
	}
	names := zones(t)
	require.Greater(t, len(names), 400)
	var checks atomic.Int64
	for round := uint64(0); checks.Load() < want; round++ {
		for i, name := range names {
			random := rand.New(rand.NewPCG(round, uint64(i)))
			checks.Add(int64(checkZone(t, name, random)))
		}
	}
	t.Logf("%d times compared in %d zones", checks.Load(), len(names))
}

// checkZone compares one window of a few days in one zone.
func checkZone(t *testing.T, name string, random *rand.Rand) int {
	t.Helper()
	zone, err := time.LoadLocation(name)
	require.NoError(t, err)
	expr := oracleExpressions[random.IntN(len(oracleExpressions))]
	skip := random.IntN(3) == 0
	gap := schedule.GapRun
	if skip {
		gap = schedule.GapSkip
	}
	from := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(random.IntN(37*365*24)) * time.Hour)
	if _, change := from.In(zone).ZoneBounds(); !change.IsZero() && change.Year() < 2038 && random.IntN(4) > 0 {
		from = change.Add(-36 * time.Hour).Truncate(time.Minute).UTC()
	}
	to := from.Add(3 * 24 * time.Hour)
	expected := newOracle(t, expr, zone, skip).fires(from, to)
	c, err := schedule.ParseCron(expr, name, "", gap)
	require.NoError(t, err)
	at := from.Add(-time.Second)
	for i, want := range expected {
		at, err = c.Next(at)
		require.NoError(t, err)
		require.Equal(t, want.Unix(), at.Unix(), "%q in %s, gap %s, number %d from %s: want %s, got %s",
			expr, name, gap, i, from, want.In(zone), at.In(zone))
	}
	after, err := c.Next(at)
	require.NoError(t, err)
	require.False(t, after.Before(to), fmt.Sprintf("%q in %s, gap %s: %s is one too many", expr, name, gap, after))
	return len(expected) + 1
}
