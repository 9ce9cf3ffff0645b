package phrase_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/schedule/phrase"
)

// A saying is a line of the corpus: a phrase, what it means, and when and where it was said.
type saying struct {
	phrase, means string
	now           time.Time
	zone          *time.Location
}

// corpus reads testdata/corpus.txt.
func corpus(tb testing.TB) []saying {
	tb.Helper()
	data, err := os.ReadFile("testdata/corpus.txt")
	require.NoError(tb, err)
	var out []saying
	var at saying
	for line := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n") {
		if rest, ok := strings.CutPrefix(line, "@now "); ok {
			now, zone, _ := strings.Cut(rest, " ")
			at.now, err = time.Parse(time.RFC3339, now)
			require.NoError(tb, err)
			at.zone = zoneOf(tb, zone)
			continue
		}
		if line[0] == '#' {
			continue
		}
		at.phrase, at.means, _ = strings.Cut(line, " => ")
		out = append(out, at)
	}
	return out
}

func zoneOf(tb testing.TB, name string) *time.Location {
	tb.Helper()
	zone, err := schedule.LoadZone(name)
	require.NoError(tb, err)
	return zone
}

// meaning writes what Parse returns as the corpus does.
func meaning(s phrase.Schedule, err error) string {
	if ambiguous, ok := errors.AsType[*phrase.AmbiguousError](err); ok {
		return "? " + ambiguous.Question + " | " + strings.Join(ambiguous.Answers, " | ")
	}
	if unknown, ok := errors.AsType[*phrase.UnknownError](err); ok {
		return fmt.Sprintf("unknown %q", unknown.Word)
	}
	if err != nil {
		return "! " + err.Error()
	}
	var fields []string
	for _, field := range []struct {
		name, value string
	}{
		{"cron ", s.Cron},
		{"delay ", duration(s.Delay)},
		{"every ", duration(s.Every)},
		{"zone ", s.Zone},
		{"day_match ", string(s.DayMatch)},
		{"gap ", string(s.Gap)},
	} {
		if field.value != "" {
			fields = append(fields, field.name+field.value)
		}
	}
	if !s.At.IsZero() {
		fields = append(fields, "at "+s.At.Format(time.RFC3339Nano))
	}
	if s.FromStart {
		fields = append(fields, "from start")
	}
	if s.Manual {
		fields = append(fields, "manual")
	}
	if fields == nil {
		return "at once"
	}
	return strings.Join(fields, ", ")
}

// duration writes one without zero minutes and seconds; nothing for none.
func duration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	text := strings.Replace(d.String(), "m0s", "m", 1)
	return strings.Replace(text, "h0m", "h", 1)
}

// Each phrase of the corpus means what is written beside it.
func TestCorpus(t *testing.T) {
	t.Parallel()
	all := corpus(t)
	require.GreaterOrEqual(t, len(all), 500)
	for _, c := range all {
		assert.Equal(t, c.means, meaning(phrase.Parse(c.phrase, c.now, c.zone)), "%q at %s", c.phrase, c.now)
	}
}

// Each answer to a question is a phrase with one meaning, and no two answers have the same one.
func TestAnswersHaveOneMeaning(t *testing.T) {
	t.Parallel()
	questions := 0
	for _, c := range corpus(t) {
		_, err := phrase.Parse(c.phrase, c.now, c.zone)
		ambiguous, ok := errors.AsType[*phrase.AmbiguousError](err)
		if !ok {
			continue
		}
		questions++
		assert.NotEmpty(t, ambiguous.Answers, c.phrase)
		seen := map[string]string{}
		for _, answer := range ambiguous.Answers {
			s, err := phrase.Parse(answer, c.now, c.zone)
			require.NoError(t, err, "%q to %q", answer, c.phrase)
			means := meaning(s, nil)
			assert.Empty(t, seen[means], "%q and %q to %q", answer, seen[means], c.phrase)
			seen[means] = answer
			assert.Equal(t, answer, phrase.Print(s), "to %q", c.phrase)
		}
	}
	assert.Greater(t, questions, 150)
}

// What a phrase means is printed as a phrase that means the same.
func TestCorpusReadsBack(t *testing.T) {
	t.Parallel()
	for _, c := range corpus(t) {
		s, err := phrase.Parse(c.phrase, c.now, c.zone)
		if err != nil {
			continue
		}
		back, err := phrase.Parse(phrase.Print(s), c.now, c.zone)
		require.NoError(t, err, "%q as %q", c.phrase, phrase.Print(s))
		assert.True(t, s.Equal(back), "%q as %q", c.phrase, phrase.Print(s))
	}
}

// No word is dropped: a phrase with a word that has no meaning is never read, wherever it is. Each phrase is tried at every second place.
func TestNoWordIsDropped(t *testing.T) {
	t.Parallel()
	for n, c := range corpus(t) {
		words := strings.Fields(c.phrase)
		for i := n % 2; i <= len(words); i += 2 {
			noise := []string{"flurb", "hourlyish", "not", "7x"}[(n/2+i/2)%4]
			spoilt := strings.Join(words[:i:i], " ") + " " + noise + " " + strings.Join(words[i:], " ")
			_, err := phrase.Parse(spoilt, c.now, c.zone)
			require.Error(t, err, spoilt)
			_, ambiguous := errors.AsType[*phrase.AmbiguousError](err)
			assert.False(t, ambiguous, "%q: %v", spoilt, err)
		}
	}
}

// silent are words without which some phrase of the corpus means the same: words between clauses, and what another word says already.
var silent = strings.Fields(`at (at on the in of a an and time each every from , day minute minutes past hour then right once twice 1 12 an half o'clock
	am! daily hourly tomorrow morning friday monday,`)

// A word that is left out changes the meaning, but for those that have none by themselves.
func TestWordsMatter(t *testing.T) {
	t.Parallel()
	for _, c := range corpus(t) {
		s, err := phrase.Parse(c.phrase, c.now, c.zone)
		if err != nil || s.Cron != "" && strings.ContainsAny(c.phrase, "*@") {
			continue
		}
		words := strings.Fields(c.phrase)
		for i, w := range words {
			short := strings.Join(slices.Concat(words[:i], words[i+1:]), " ")
			if other, err := phrase.Parse(short, c.now, c.zone); err == nil && s.Equal(other) {
				assert.Contains(t, silent, strings.ToLower(w), "%q means the same without %q", c.phrase, w)
			}
		}
	}
}
