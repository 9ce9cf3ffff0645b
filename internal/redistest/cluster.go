package redistest

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

const (
	// allSlots is the number of hash slots of a cluster.
	allSlots = 16384
	// clusterEnabled is the argument of a server that is to be a node.
	clusterEnabled = "--cluster-enabled"
	// busOffset is how far a node's port for other nodes is from the one for clients.
	busOffset = 10000
)

// StartCluster starts a cluster of one node that has all slots.
// Everything that is about slots and redirections can be tried on one node.
func StartCluster(tb testing.TB) *Server {
	tb.Helper()
	s := StartTCP(tb, clusterEnabled, "yes")
	FormCluster(tb, s)
	return s
}

// whole leaves a test out of `make test`: its servers need longer to find one another than most tests run.
func whole(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("a cluster of several nodes: make check runs it")
	}
}

// StartTwoNodes starts a cluster of two nodes, each with half of the slots.
// It is the smallest cluster in which a client has to follow a redirection to another server.
func StartTwoNodes(tb testing.TB) (a, b *Server) {
	tb.Helper()
	whole(tb)
	a, b = StartTCP(tb, clusterEnabled, "yes"), StartTCP(tb, clusterEnabled, "yes")
	FormCluster(tb, a, b)
	return a, b
}

// Cluster is a cluster whose masters each have a replica that takes over if its master dies.
// It is what a managed cluster looks like from outside, with times short enough for a test.
type Cluster struct {
	Masters, Replicas []*Server // the i-th replica is the one of the i-th master
}

// StartMasters starts a cluster of some masters without replicas: nothing that was acknowledged is lost by a failover that a
// busy machine causes.
func StartMasters(tb testing.TB, n int) *Cluster {
	tb.Helper()
	whole(tb)
	c := &Cluster{}
	for range n {
		c.Masters = append(c.Masters, StartTCP(tb, clusterEnabled, "yes"))
	}
	FormCluster(tb, c.Masters...)
	return c
}

// StartThreeMasters starts a cluster of three masters with a replica each. A master counts as dead after two seconds, and
// the others serve their slots meanwhile. It returns once each replica follows its master and everybody knows everybody.
func StartThreeMasters(tb testing.TB) *Cluster {
	tb.Helper()
	whole(tb)
	const n = 3
	start := func() *Server {
		return StartTCP(tb, clusterEnabled, "yes", "--cluster-node-timeout", "2000", "--cluster-require-full-coverage", "no",
			"--repl-diskless-sync-delay", "0")
	}
	c := &Cluster{}
	for range n {
		c.Masters, c.Replicas = append(c.Masters, start()), append(c.Replicas, start())
	}
	FormCluster(tb, c.Masters...)
	for i, replica := range c.Replicas {
		replica.follow(tb, c.Masters[i])
	}
	// A cluster agrees by gossip, which takes a moment: a test that begins
	// earlier would see a half-made one.
	for _, s := range append(c.Masters, c.Replicas...) {
		client := s.Client(tb)
		eventually(tb, "a node does not know all others", func() bool {
			nodes, err := client.ClusterNodes(tb.Context()).Result()
			return err == nil && strings.Count(nodes, "slave ") == n && strings.Count(nodes, " connected") == 2*n
		})
	}
	return c
}

// Addrs are the addresses of all nodes.
func (c *Cluster) Addrs() []string {
	var addrs []string
	for _, s := range slices.Concat(c.Masters, c.Replicas) {
		addrs = append(addrs, s.Addr)
	}
	return addrs
}

// Shard is the index of the master that the key belongs to at the start.
// After a failover the replica has the key.
func (c *Cluster) Shard(tb testing.TB, key string) int {
	tb.Helper()
	slot, err := c.Masters[0].Client(tb).ClusterKeySlot(tb.Context(), key).Result()
	require.NoError(tb, err)
	return int(slot) * len(c.Masters) / allSlots
}

// follow makes a node the replica of a master, and returns once it has what the master has.
func (s *Server) follow(tb testing.TB, master *Server) {
	tb.Helper()
	c := s.Client(tb)
	id, err := master.Client(tb).ClusterMyID(tb.Context()).Result()
	require.NoError(tb, err)
	meet(tb, c, master)
	eventually(tb, "a node does not become a replica", func() bool {
		return c.ClusterReplicate(tb.Context(), id).Err() == nil // fails until it knows the master
	})
	eventually(tb, "a replica does not reach its master", func() bool {
		info, err := c.Info(tb.Context(), "replication").Result()
		return err == nil && strings.Contains(info, "master_link_status:up")
	})
}

// meet introduces a node to another one; the others hear of both.
func meet(tb testing.TB, c *redis.Client, other *Server) {
	tb.Helper()
	host, port, err := net.SplitHostPort(other.Addr)
	require.NoError(tb, err)
	require.NoError(tb, c.ClusterMeet(tb.Context(), host, port).Err())
}

// FormCluster makes one cluster of servers that were started with cluster-enabled: each gets an equal part of the slots.
func FormCluster(tb testing.TB, servers ...*Server) {
	tb.Helper()
	for i, s := range servers {
		var slots []int // one by one, as Redis before 7 knows no ranges
		for k := range allSlots {
			if k*len(servers)/allSlots == i {
				slots = append(slots, k)
			}
		}
		c := s.Client(tb)
		require.NoError(tb, c.ClusterAddSlots(tb.Context(), slots...).Err())
		require.NoError(tb, c.Do(tb.Context(), "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err()) // else they take time to agree
		if i > 0 {
			meet(tb, c, servers[0])
		}
	}
	for _, s := range servers {
		c := s.Client(tb)
		eventually(tb, "a node does not know all slots", func() bool {
			info, err := c.ClusterInfo(tb.Context()).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_slots_assigned:"+strconv.Itoa(allSlots))
		})
	}
}

// eventually waits until something is so. The limit only bounds a test that fails.
func eventually(tb testing.TB, message string, is func() bool) {
	tb.Helper()
	require.Eventually(tb, is, 30*time.Second, 10*time.Millisecond, message)
}
