// Package servers tries what happens to Redis itself: its log is cut off anywhere, as by a power failure, and a sentinel promotes a
// replica under load. What happens to a cluster, and to memory, is tried in core/redisstore.
//
// It has no code but tests.
package servers
