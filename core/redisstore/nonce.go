package redisstore

import "crypto/rand"

// newNonce is a nonce for a claim of the store's own.
func newNonce() string { return rand.Text()[:16] }
