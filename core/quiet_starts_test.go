package core_test

// Quiet hours, at random: whatever tasks and profiles there are, nothing starts within them.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/internal/race"
)

// TestNoStartInQuietHours runs tasks with any schedule for agents with any quiet hours, whose profiles change all the time, and looks at
// each start. DULY_CRON_CHECKS sets how many occurrences: `make cron-nightly` asks for a million.
func TestNoStartInQuietHours(t *testing.T) {
	want := 3000
	if race.Enabled {
		want /= 4
	}
	if s := os.Getenv("DULY_CRON_CHECKS"); s != "" {
		_, err := fmt.Sscan(s, &want)
		require.NoError(t, err)
	}
	virtual(t, core.Config{Concurrency: 200}, func(w *world) {
		var mu sync.Mutex
		random, starts, inQuiet := rand.New(rand.NewPCG(1, 2)), 0, 0
		quiet := map[string]*schedule.Quiet{}
		core.Handle(w.s, "k", func(_ context.Context, task *core.Task[note]) error {
			mu.Lock()
			defer mu.Unlock()
			starts++
			if now := time.Now(); quiet[task.Agent].Until(now).After(now) {
				inQuiet++
			}
			switch random.IntN(8) {
			case 0:
				return errBoom
			case 1:
				return core.Snooze(time.Duration(random.IntN(600)) * time.Minute)
			}
			return nil
		})
		agents := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
		change := func() {
			p := core.Profile{Agent: agents[random.IntN(len(agents))], Zone: []string{"", "Europe/Berlin", "Asia/Kolkata", "America/St_Johns"}[random.IntN(4)]}
			for range random.IntN(4) {
				clock := func() string { return fmt.Sprintf("%02d:%02d", random.IntN(24), random.IntN(60)) }
				p.Quiet = append(p.Quiet, core.QuietHours{From: clock(), To: clock(), Days: [][]string{nil, {"sat-sun"}, {"mon-fri"}}[random.IntN(3)]})
			}
			q, err := schedule.ParseQuiet(p.Quiet, p.Zone)
			if err != nil {
				return // it leaves no time
			}
			w.profile(p)
			quiet[p.Agent] = q
		}
		for i := range 320 {
			task := core.NewTask{Agent: agents[i%len(agents)], ID: fmt.Sprint(i), Kind: "k", PauseAfter: -1, Jitter: time.Duration(random.IntN(2)) * time.Minute}
			switch random.IntN(4) {
			case 0:
				task.Every = time.Duration(5+random.IntN(600)) * time.Minute
			case 1:
				task.Every, task.From, task.Misfire = time.Duration(20+random.IntN(600))*time.Minute, core.FromStart, core.MisfireAll
			case 2:
				task.Cron, task.Zone = fmt.Sprintf("%d */%d * * *", random.IntN(60), 1+random.IntN(8)), core.ZoneOfAgent
			default:
				task.Cron, task.Overlap = fmt.Sprintf("%d %d * * *", random.IntN(60), random.IntN(24)), core.OverlapAllow
			}
			w.submit(task)
		}
		for starts < want {
			change()
			w.runUntil(time.Duration(1+random.IntN(1200)) * time.Minute)
		}
		assert.Zero(t, inQuiet, "of %d starts", starts)
		assert.Greater(t, time.Since(w.begun), time.Duration(want)*30*time.Second)
		t.Logf("%d starts in %s, %d of them in quiet hours", starts, time.Since(w.begun), inQuiet)
	})
}
