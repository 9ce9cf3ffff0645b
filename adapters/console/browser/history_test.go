package browser_test

// A past for the pictures: what a week of runs would have left in Redis.

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// past writes counters of the runs of the last hours and days beside those that the daemon has just written.
func past(t *testing.T, redis string) {
	t.Helper()
	c, err := net.Dial("unix", strings.TrimPrefix(redis, "unix://"))
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	r := bufio.NewReader(c)
	keys := command(t, c, r, "KEYS", "*recent:*")
	require.NotEmpty(t, keys)
	prefix, _, _ := strings.Cut(keys[0], "recent:")
	now := time.Now().UnixMilli()
	for back := int64(1); back <= 8*24; back++ {
		hour := now/3_600_000 - back
		ran(t, c, r, fmt.Sprintf("%srecent:h%d", prefix, hour), hour, 12)
	}
	for back := int64(1); back <= 24*12; back++ {
		slot := now/300_000 - back
		ran(t, c, r, fmt.Sprintf("%srecent:%d", prefix, slot), slot/12*12+slot%12, 1)
	}
}

// ran writes the counters of a slot, of so many times five minutes: more by day than by night.
func ran(t *testing.T, c net.Conn, r *bufio.Reader, key string, slot, times int64) {
	t.Helper()
	per := float64(12 / times)
	day := 1.2 + math.Sin(2*math.Pi*float64(slot)/(24*per)) + 0.3*math.Sin(float64(slot)*1.7)
	args := []string{"HSET", key}
	add := func(name string, n float64) { args = append(args, name, strconv.Itoa(int(max(n, 0)))) }
	for _, kind := range []struct {
		name         string
		rate, failed float64
	}{{"digest", 6, 0.01}, {"sync", 22, 0.004}, {"crm", 4, 0.2 + 0.2*math.Sin(float64(slot)/5)}, {"refund", 1.5, 0}} {
		runs := math.Floor(kind.rate * day * float64(times))
		if runs <= 0 {
			continue
		}
		add("r"+kind.name, runs)
		add("f"+kind.name, runs*max(kind.failed, 0))
		fast := math.Floor(runs * 0.7)
		add("l05"+kind.name, fast)
		add("l"+strconv.Itoa(12+int(4*(1+math.Sin(float64(slot)/3))))+kind.name, runs-fast)
		add("w"+kind.name, 3+kind.rate*day/2)
	}
	add("uruns a day of each agent", 1000*(0.15+0.7*float64(slot%int64(24*per))/(24*per)))
	command(t, c, r, args...)
}

// command sends a command and returns its answer, the elements of an array or one value.
func command(t *testing.T, c net.Conn, r *bufio.Reader, args ...string) []string {
	t.Helper()
	text := fmt.Sprintf("*%d\r\n", len(args))
	for _, a := range args {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(a), a)
	}
	_, err := c.Write([]byte(text))
	require.NoError(t, err)
	return reply(t, r)
}

// reply reads an answer.
func reply(t *testing.T, r *bufio.Reader) (out []string) {
	t.Helper()
	line, err := r.ReadString('\n')
	require.NoError(t, err)
	line = strings.TrimSpace(line)
	n, _ := strconv.Atoi(line[1:])
	switch line[0] {
	case '*':
		for range n {
			out = append(out, reply(t, r)...)
		}
	case '$':
		data := make([]byte, n+2)
		_, err := io.ReadFull(r, data)
		require.NoError(t, err)
		out = []string{string(data[:n])}
	default:
		require.NotEqual(t, byte('-'), line[0], line)
		out = []string{line[1:]}
	}
	return out
}
