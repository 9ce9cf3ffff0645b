package network_test

import (
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/proof"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// Connections are cut, hang half open and are slow, an operator kills all of them, and Redis forgets its scripts, again and again: every
// task ends as it has to, and nothing is left.
func TestBadWeather(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	net := startProxy(t, srv.Addr)
	p := platformOn(t, net.listener.Addr().String(), "", 3)
	operator := srv.Client(t)
	net.set(true)
	until := time.Now().Add(time.Duration(proof.Size(4, 120)) * time.Second)

	var mu sync.Mutex
	ends := map[string]map[string]core.Status{}
	var clients sync.WaitGroup
	for c := range 4 {
		clients.Go(func() {
			for i := 0; time.Now().Before(until) && !t.Failed(); i++ {
				agent := fmt.Sprintf("c%d-%d", c, i)
				got := p.use(agent)
				mu.Lock()
				ends[agent] = got
				mu.Unlock()
			}
		})
	}
	storms := 0
	beat := time.NewTicker(250 * time.Millisecond)
	defer beat.Stop()
	for time.Now().Before(until) {
		<-beat.C
		assert.NoError(t, operator.Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err())
		assert.NoError(t, operator.ScriptFlush(t.Context()).Err())
		storms++
	}
	clients.Wait()
	net.set(false)
	tasks, again := 0, 0
	for agent, want := range maps.All(ends) {
		again += p.ended(agent, want)
		tasks += len(want)
	}
	p.clean()
	assert.NotZero(t, net.cuts)
	proof.Figure(t, "%d tasks through %d cut connections and %d storms of CLIENT KILL and SCRIPT FLUSH: 0 lost, 0 stuck, %d second starts, each with its reason",
		tasks, net.cuts, storms, again)
}
