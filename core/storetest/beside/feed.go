package beside

// Events of all processes: kept while somebody listens, in order, and read by their ids.

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store/feed"
	"github.com/seed-6f6f2c11/duly/core/storetest/given"
)

// feedBench is the feed of a store: it is optional, and both have it.
type feedBench struct {
	*bench
	feed.Feed
}

func (b *bench) feed() *feedBench {
	st, ok := b.store.(feed.Feed)
	require.True(b, ok)
	return &feedBench{b, st}
}

// follow reads a page, as somebody who listens for an hour.
func (f *feedBench) follow(after string, limit int) feed.Page {
	f.Helper()
	page, err := f.Follow(f.Context(), feed.Follow{After: after, Limit: limit, For: time.Hour})
	require.NoError(f, err)
	return page
}

// publish publishes texts, and says whether somebody listens.
func (f *feedBench) publish(lost int, texts ...string) bool {
	f.Helper()
	events := make([][]byte, len(texts))
	for i := range texts {
		events[i] = []byte(texts[i])
	}
	listened, err := f.Publish(f.Context(), lost, events)
	require.NoError(f, err)
	return listened
}

// told are the events of a page, and how many are said to be lost where.
func told(p feed.Page) []string {
	all := make([]string, len(p.Items))
	for i, item := range p.Items {
		if all[i] = string(item.Data); item.Data == nil {
			all[i] = fmt.Sprintf("lost %d", item.Lost)
		}
	}
	return all
}

// Whoever listens gets what is published from then on, each event once and in order, from any of its ids on.
func testFeed(_ *testing.T, b *bench) {
	b.with(given.Options{Partitions: 4})
	f := b.feed()
	assert.False(b, f.publish(0, "nobody listens"), "nobody does")
	start := f.follow("", 10)
	assert.Empty(b, start.Items)
	assert.True(b, f.publish(0, "a", "b"))
	assert.True(b, f.publish(0, "c"))
	first := f.follow(start.Next, 2)
	assert.Equal(b, []string{"a", "b"}, told(first))
	assert.True(b, first.More)
	rest := f.follow(first.Next, 2)
	assert.Equal(b, []string{"c"}, told(rest))
	assert.False(b, rest.More)
	assert.Empty(b, f.follow(rest.Next, 2).Items)
	assert.Equal(b, []string{"b", "c"}, told(f.follow(first.Items[0].ID, 10)), "behind any event")
	assert.Equal(b, rest.Next, f.follow("", 10).Next, "from now on")
	secret, err := f.FeedSecret(b.Context())
	require.NoError(b, err)
	assert.Len(b, secret, feed.SecretLen)
	again, err := f.FeedSecret(b.Context())
	require.NoError(b, err)
	assert.Equal(b, secret, again, "all processes seal with the same")
	for _, id := range []string{"x", "1", "-", "1-", "-1", "1-2-3", "+1-1", "1 -1", "99999999999999999999-1"} {
		_, err := f.Follow(b.Context(), feed.Follow{After: id, Limit: 1, For: time.Hour})
		assert.ErrorAs(b, err, new(*feed.IDError), id)
	}
}

// Events that were lost are said to be, where they were: by a process that could not keep up, or as too many came.
func testFeedLost(_ *testing.T, b *bench) {
	b.with(given.Options{})
	f := b.feed()
	start := f.follow("", 10)
	f.publish(0, "a")
	f.publish(3, "b")
	f.publish(2)
	page := f.follow(start.Next, 10)
	assert.Equal(b, []string{"a", "lost 3", "b", "lost 2"}, told(page))
	assert.Equal(b, []string{"b", "lost 2"}, told(f.follow(page.Items[1].ID, 10)), "it is said once")
	assert.Empty(b, f.follow(page.Next, 10).Items)
	from, n := page.Next, 2*feed.Kept+500
	texts := make([]string, 500)
	for i := range n {
		texts[i%500] = fmt.Sprint(i)
		if i%500 == 499 {
			f.publish(0, texts...)
		}
	}
	page = f.follow(from, 1)
	require.Len(b, page.Items, 2)
	lost := page.Items[0].Lost
	assert.LessOrEqual(b, n-lost, 2*feed.Kept, "what is kept is bounded")
	assert.GreaterOrEqual(b, n-lost, feed.Kept)
	assert.Equal(b, fmt.Sprint(lost), string(page.Items[1].Data), "so many are missing")
}

// Once nobody has listened for a while nothing is kept, and whoever comes back is told so; what was kept before is still there.
func testFeedLapse(_ *testing.T, b *bench) {
	b.with(given.Options{Partitions: 2})
	f := b.feed()
	start := f.follow("", 10)
	f.publish(0, "a", "b")
	seen := f.follow(start.Next, 1)
	f.lapse(seen.Next)
	assert.False(b, f.Listened(), "nobody does any more")
	assert.Equal(b, []string{"b", "lost -1"}, told(f.follow(seen.Next, 10)))
	f.publish(0, "c")
	back := f.follow(seen.Next, 10)
	assert.Equal(b, []string{"b", "lost -1", "c"}, told(back))
	assert.Empty(b, f.follow(back.Next, 10).Items)
	assert.Equal(b, []string{"lost -1"}, told(f.follow("4503599627370495-7", 10)), "the id of a store that was emptied, or of none")
	assert.Equal(b, []string{"lost -1", "a", "b", "lost -1", "c"}, told(f.follow("0-0", 10)))
}

// lapse lets the time pass for which somebody listens: that of the test, and that of Redis, which forgets by its own clock.
func (f *feedBench) lapse(after string) {
	f.Helper()
	_, err := f.Follow(f.Context(), feed.Follow{After: after, Limit: 1, For: 10 * time.Millisecond})
	require.NoError(f, err)
	f.clock.Advance(time.Minute)
	assert.Eventually(f, func() bool { return !f.publish(0) }, 10*time.Second, 5*time.Millisecond)
}
