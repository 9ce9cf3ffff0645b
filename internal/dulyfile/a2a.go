package dulyfile

// The Agent2Agent protocol: what a message becomes, and what the cards of agents say.

import (
	"net/url"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// longestWait is how long a client may wait at most, as any request to the API.
const longestWait = 5 * time.Minute

// A2A says what messages become.
type A2A struct {
	Kind, Description string
	URL               string        // where clients reach the API; as they have called it if empty
	Wait              time.Duration // for the end of a task; the default if zero
}

// readA2A reads the key a2a.
func readA2A(f *File, p place) error {
	if p.node == nil || p.empty() {
		return nil
	}
	var a A2A
	if err := p.read(map[string]reader{"kind": text(&a.Kind), "description": text(&a.Description), "url": text(&a.URL), "wait": duration(&a.Wait)}); err != nil {
		return err
	}
	if a.Kind == "" {
		return p.fail("must have kind, that of the tasks that messages become, such as answer")
	}
	if u, err := url.Parse(a.URL); a.URL != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.RawQuery != "" || u.Fragment != "" || u.User != nil) {
		return p.of("url").fail("must be the address of the API as clients reach it, such as https://duly.example")
	}
	if a.Wait < 0 || a.Wait > longestWait {
		return p.of("wait").fail("must be between 1ms and %s, not %s", longestWait, a.Wait)
	}
	f.A2A = &a
	return check(p, a.Kind, core.Config{Default: core.KindConfig{Lease: f.Lease}, Kinds: map[string]core.KindConfig{a.Kind: {}}})
}
