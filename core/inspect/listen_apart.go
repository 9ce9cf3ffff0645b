package inspect

// Listeners that may see only some of the events: their ids reveal nothing of the others.

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/store/feed"
)

// listenApart is Listen for a principal that may see only some of the events. The ids of events count all of the store; those that are passed
// on here are sealed with a secret that the store keeps: two of them reveal nothing of what lies between. For one that was sealed with a secret
// that the store has lost since, the listener gets a notice of lost events, and then those from now on.
func (s *View) listenApart(ctx context.Context, after string, hand func(EventPage) error) error {
	secret, err := s.base.Config.Feed.FeedSecret(ctx)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // whoever listened has left
	}
	if err != nil {
		return err
	}
	seal, err := newSeal(secret)
	if err != nil {
		return err
	}
	from, lost, err := seal.open(after)
	if err != nil {
		return err
	}
	return s.listen(ctx, from, func(page EventPage) error {
		if lost {
			lost = false
			page.Items = append([]StoreEvent{{ID: page.Next, Lost: LostUnknown}}, page.Items...)
		}
		for i := range page.Items {
			seal.event(&page.Items[i])
		}
		page.Next = seal.fresh(page.Next)
		return hand(page)
	})
}

// seal makes ids that can be opened again, and not be read, with the secret of a store.
type seal struct {
	aead cipher.AEAD
	key  []byte // of the nonces: one that follows from the id makes the same id each time
}

// sealedIDLen is how long the id of an event may be inside: shorter ones are padded, so that the length reveals nothing.
const sealedIDLen = 34

// newSeal makes the seal of a secret.
func newSeal(secret []byte) (*seal, error) {
	sum := sha256.Sum256(secret)
	block, err := aes.NewCipher(sum[:])
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	return &seal{aead: aead, key: secret}, err
}

// event seals the id of an event, also in its JSON.
func (s *seal) event(e *StoreEvent) {
	plain := e.ID
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(plain))
	e.ID = s.with(mac.Sum(nil)[:s.aead.NonceSize()], plain)
	if e.Data != nil {
		e.Data = append(json.RawMessage(`{"event_id":"`+e.ID), bytes.TrimPrefix(e.Data, []byte(`{"event_id":"`+plain))...)
	}
}

// fresh seals an id, and differently each time: so a new value does not even reveal that something has happened.
func (s *seal) fresh(id string) string {
	nonce := make([]byte, s.aead.NonceSize())
	_, _ = rand.Read(nonce) // it never fails
	return s.with(nonce, id)
}

// with seals an id with a nonce.
func (s *seal) with(nonce []byte, id string) string {
	plain := make([]byte, sealedIDLen)
	copy(plain, id)
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nonce, nonce, plain, nil))
}

// open returns the id in a sealed one; lost if it was sealed with another secret.
func (s *seal) open(sealed string) (id string, lost bool, err error) {
	if sealed == "" {
		return "", false, nil
	}
	n := s.aead.NonceSize()
	data, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil || len(data) != n+sealedIDLen+s.aead.Overhead() {
		return "", false, check.Invalid("since_id", "%s: take one that was sent with an event", &feed.IDError{ID: sealed})
	}
	plain, err := s.aead.Open(nil, data[:n], data[n:], nil)
	if err != nil {
		return "", true, nil //nolint:nilerr // the store was emptied or moved since: nothing behind it is known
	}
	return string(bytes.TrimRight(plain, "\x00")), false, nil
}
