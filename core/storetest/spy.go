package storetest

import "github.com/seed-6f6f2c11/duly/core/storetest/spy"

// Spy is the store for tests that count, delay or fail the calls of another one.
type Spy = spy.Store
