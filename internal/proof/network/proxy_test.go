package network_test

// The proxy: a network between clients and Redis that can be made bad.

import (
	"math/rand/v2"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// proxy passes on what clients and Redis say to each other.
type proxy struct {
	listener net.Listener
	to       string
	done     sync.WaitGroup

	mu    sync.Mutex
	links map[*link]bool
	bad   bool
	cuts  int
}

// link is one connection of a client.
type link struct {
	client, redis net.Conn

	mu   sync.Mutex
	hung chan struct{} // closed when the link may go on; nil: it is not hung
}

func startProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(t.TempDir(), "p"))
	require.NoError(t, err)
	p := &proxy{listener: l, to: to, links: map[*link]bool{}}
	p.done.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.each(func(l *link) { l.cut() })
		p.done.Wait()
	})
	return p
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		redis, err := net.Dial("unix", p.to)
		if err != nil {
			_ = client.Close()
			continue
		}
		l := &link{client: client, redis: redis}
		p.mu.Lock()
		p.links[l] = true
		p.mu.Unlock()
		p.done.Go(func() { p.pass(l, client, redis) })
		p.done.Go(func() { p.pass(l, redis, client) })
	}
}

// pass copies one direction until it ends, and then ends the other.
func (p *proxy) pass(l *link, from, to net.Conn) {
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		if n > 0 && p.weather(l) {
			_, err = to.Write(buffer[:n])
		}
		if err != nil || n == 0 {
			break
		}
	}
	l.cut()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// weather does to a piece of what is said what bad networks do. It reports whether the piece arrives.
func (p *proxy) weather(l *link) bool {
	l.mu.Lock()
	hung := l.hung
	l.mu.Unlock()
	if hung != nil {
		<-hung
		return false // a connection that was half open is of no use any more
	}
	p.mu.Lock()
	bad := p.bad
	p.mu.Unlock()
	if !bad {
		return true
	}
	switch n := rand.IntN(1000); {
	case n < 4:
		p.mu.Lock()
		p.cuts++
		p.mu.Unlock()
		l.cut()
		return false
	case n < 6:
		l.hang(time.Duration(rand.IntN(3000)) * time.Millisecond)
		return false
	case n < 30:
		delay := time.NewTimer(time.Duration(rand.IntN(30)) * time.Millisecond)
		<-delay.C
	}
	return true
}

// cut ends both sides at once.
func (l *link) cut() {
	_ = l.client.Close()
	_ = l.redis.Close()
}

// hang says nothing more, and ends the link only after a while.
func (l *link) hang(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hung != nil {
		return
	}
	hung := make(chan struct{})
	l.hung = hung
	time.AfterFunc(d, func() {
		l.cut()
		close(hung)
	})
}

func (p *proxy) each(do func(*link)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		do(l)
	}
}

// set makes the network bad, or good again.
func (p *proxy) set(bad bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bad = bad
}
