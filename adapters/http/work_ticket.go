package http

// Tickets: what a worker hands back of a run, so that any server can go on with it.

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"

	"github.com/seed-6f6f2c11/duly/core"
)

// tickets seals and opens tickets. The first key seals, and each opens, so that keys can be rotated.
type tickets [][]byte

// sealLen is how long a seal is.
const sealLen = 16

// mostTicket is how long a ticket may be that is looked at.
const mostTicket = 4 << 10

// newTickets takes the keys of a configuration: its secrets, else its tokens. Where no credential is needed there is no secret to keep; where others
// are verified and no secret is set, no other server takes the tickets of this one.
func newTickets(c *Config) tickets {
	secrets := c.TicketSecrets
	if secrets == nil {
		secrets = append(secrets, c.Tokens...)
		for _, t := range c.Scoped {
			secrets = append(secrets, t.Token)
		}
	}
	if len(secrets) == 0 {
		secrets = []string{""}
		if len(c.Signed)+len(c.Verifiers) > 0 {
			secrets = []string{rand.Text()}
		}
	}
	var all tickets
	for _, secret := range secrets {
		h := hmac.New(sha256.New, []byte(secret))
		h.Write([]byte("tickets of duly"))
		all = append(all, h.Sum(nil))
	}
	return all
}

// sealOf is the seal of a content by a key.
func sealOf(key, content []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(content)
	return h.Sum(nil)[:sealLen]
}

// seal makes the text of a ticket.
func (t tickets) seal(ticket *core.Ticket) string {
	content, _ := json.Marshal(ticket) // it has texts and numbers only
	return base64.RawURLEncoding.EncodeToString(append(sealOf(t[0], content), content...))
}

// open reads one. What was not sealed here, or by a server with the same secrets, is refused.
func (t tickets) open(text string) (core.Ticket, error) {
	var out core.Ticket
	invalid := &core.InvalidError{Field: "ticket", Reason: "is none that this server has given: hand it back as it came with its run"}
	if len(text) > mostTicket {
		return out, invalid
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(data) < sealLen {
		return out, invalid
	}
	content := data[sealLen:]
	for _, key := range t {
		// guard: ticket-seal
		if !hmac.Equal(data[:sealLen], sealOf(key, content)) {
			continue
		}
		if json.Unmarshal(content, &out) != nil {
			return core.Ticket{}, invalid
		}
		return out, nil
	}
	return out, invalid
}
