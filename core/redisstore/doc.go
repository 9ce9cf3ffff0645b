// Package redisstore is the [store.Store] on Redis: one Go method and one Lua script for each verb.
//
// # Layout
//
// All agents are spread over a few partitions by a hash of their id. The keys of a partition contain one hash tag, so
// that one script changes a partition atomically, also on Redis Cluster. An agent with one live task costs one hash
// field and one sorted-set entry; only from its second task on has it keys of its own. scripts/layout.lua, which is
// put in front of every script, describes all keys; docs/decisions/0001-store-layout.md says why.
//
// # Promises
//
// The scripts read the time from Redis, and nothing else decides what is due. A claim is one script: it takes back
// expired leases, picks tasks, and leases them under a fence, so a crash at any point leaves each task either in the
// queue or under a lease that ends. Every script can be repeated: a submit by the task's id, a claim by its nonce, a
// settle by its fence. The store repeats calls itself when an answer is lost, and switches the client's own retries
// off. A settle begins with a write that Redis allows when its memory is full, so finished work is always recorded.
// Nothing that is not finished ever has a TTL.
//
// Commands that only the opening of a store needs go by their names (Do): a method of go-redis that is called through its
// interfaces is in the program once for each sort of client, which a function pays for at each cold start.
package redisstore
