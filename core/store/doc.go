// Package store is the contract of a store: what it remembers, what each of its verbs does in one atomic step, and the types
// that they take and return. It imports nothing of duly, so that an author of a store has to know this package and no other.
//
// Package core decides what happens to tasks and calls a [Store]; memstore and redisstore keep the contract; storetest is the
// contract as tests. All that is opaque to a store here, as bytes, is written and read by core alone.
package store
