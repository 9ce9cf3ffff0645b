package redistest

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// allSlots is the number of hash slots of a cluster.
const allSlots = 16384

// StartCluster starts a cluster of one node that has all slots.
func StartCluster(tb testing.TB) *Server {
	tb.Helper()
	s := StartTCP(tb, "--cluster-enabled", "yes")
	FormCluster(tb, s)
	return s
}

// StartTwoNodes starts a cluster of two nodes, each with half of the slots.
func StartTwoNodes(tb testing.TB) (a, b *Server) {
	tb.Helper()
	a, b = StartTCP(tb, "--cluster-enabled", "yes"), StartTCP(tb, "--cluster-enabled", "yes")
	FormCluster(tb, a, b)
	return a, b
}

// FormCluster makes one cluster of servers that were started with cluster-enabled: each gets an equal part of the slots.
func FormCluster(tb testing.TB, servers ...*Server) {
	tb.Helper()
	part := allSlots / len(servers)
	for i, s := range servers {
		slots := make([]int, part) // one by one, as Redis before 7 knows no ranges
		for k := range slots {
			slots[k] = i*part + k
		}
		c := s.Client(tb)
		require.NoError(tb, c.ClusterAddSlots(tb.Context(), slots...).Err())
		require.NoError(tb, c.Do(tb.Context(), "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err()) // else they take time to agree
		host, port, err := net.SplitHostPort(servers[0].Addr)
		require.NoError(tb, err)
		if i > 0 {
			require.NoError(tb, c.ClusterMeet(tb.Context(), host, port).Err())
		}
	}
	for _, s := range servers {
		c := s.Client(tb)
		require.Eventually(tb, func() bool {
			info, err := c.ClusterInfo(tb.Context()).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok")
		}, 20*time.Second, 10*time.Millisecond)
	}
}
