// Package store is the contract of a store: what it remembers, what each of its verbs does in one atomic step, and the types
// that they take and return. Each of its subjects is a package below this one. It imports nothing else of duly, so that an author of a store has to know
// these packages and no other.
//
// Package core decides what happens to tasks and calls a [Store]; memstore and redisstore keep the contract; storetest is the
// contract as tests. All that is opaque to a store here, as bytes, is written and read by core alone.
package store
