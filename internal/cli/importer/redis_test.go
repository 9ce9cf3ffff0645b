package importer_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/cli/importer"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// readRedis reads a Redis, has duly read what was made of it, and sees that nothing has been written.
func readRedis(t *testing.T, format string, s *redistest.Server) *importer.Found {
	t.Helper()
	c := s.Client(t)
	changes := func() string {
		info, err := c.Info(t.Context(), "persistence").Result()
		require.NoError(t, err)
		_, rest, _ := strings.Cut(info, "rdb_changes_since_last_save:")
		line, _, _ := strings.Cut(rest, "\r\n")
		return line
	}
	before := changes()
	found, err := importer.ReadRedis(t.Context(), format, s.URL, "ops")
	require.NoError(t, err)
	assert.Equal(t, before, changes(), "it is read and not written")
	file, err := found.File()
	require.NoError(t, err)
	_, err = dulyfile.Parse(t.Context(), "duly.yaml", file, dulyfile.Defaults{})
	require.NoError(t, err, string(file))
	return found
}

// fill writes what BullMQ has written, as testdata/bullmq.cjs has recorded it with one of its releases.
func fill(t *testing.T, c *redis.Client, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var wrote struct {
		Zsets  map[string][]string
		Hashes map[string]map[string]string
	}
	require.NoError(t, json.Unmarshal(data, &wrote))
	for key, pairs := range wrote.Zsets {
		for i := 0; i < len(pairs); i += 2 {
			score, err := strconv.ParseFloat(pairs[i+1], 64)
			require.NoError(t, err)
			require.NoError(t, c.ZAdd(t.Context(), key, redis.Z{Score: score, Member: pairs[i]}).Err())
		}
	}
	for key, hash := range wrote.Hashes {
		require.NoError(t, c.HSet(t.Context(), key, hash).Err())
	}
}

// schedulers sees that the job schedulers of BullMQ 5.16 and later were read.
func schedulers(t *testing.T, found *importer.Found) {
	t.Helper()
	assert.ElementsMatch(t, []importer.Task{
		{Agent: "ops", ID: "digest", Kind: "mail:digest", Cron: "0 7 * * 1-5", Zone: "Europe/Berlin", Payload: map[string]any{"topic": "engines"}},
		{Agent: "ops", ID: "poll", Kind: "mail:poll", Every: "1m0s", From: "start"},
		{Agent: "ops", ID: "seconds", Kind: "mail:tick", Cron: "*/10 * * * * *", Payload: map[string]any{"data": "[1]"}},
	}, found.Tasks)
	assert.Equal(t, map[string]importer.Handler{"mail:digest": {Worker: &struct{}{}, Attempts: 3}, "mail:poll": {Worker: &struct{}{}}, "mail:tick": {Worker: &struct{}{}}}, found.Kinds)
	left := strings.Join(found.Left, "\n")
	for _, want := range []string{"poll: it ends after 10 runs", "poll: offset ", "seconds: it has no zone", "seconds: its data is no JSON object", "seconds: endDate 2030-01-01T00:00:00Z", "handlers: write what runs"} {
		assert.Contains(t, left, want)
	}
	assert.Len(t, found.Left, 6)
}

// The schedulers of BullMQ are tasks of workers, of its newest release and of one that had repeatable jobs.
func TestBullMQ(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	fill(t, s.Client(t), "testdata/bullmq-6.json")
	schedulers(t, readRedis(t, "bullmq", s))
	old := redistest.Start(t)
	fill(t, old.Client(t), "testdata/bullmq-4.json")
	require.NoError(t, old.Client(t).ZAdd(t.Context(), "bull:mail:repeat", redis.Z{Score: 1, Member: "0123"}).Err())
	found := readRedis(t, "bullmq", old)
	assert.ElementsMatch(t, []importer.Task{
		{Agent: "ops", ID: "sweep", Kind: "mail:sweep", Cron: "0 3 * * *", Zone: "Europe/Berlin", Payload: map[string]any{"days": 7.0}},
		{Agent: "ops", ID: "beat", Kind: "mail:beat", Every: "24h0m0s", From: "start", Payload: map[string]any{"n": 1.0}},
	}, found.Tasks)
	assert.Equal(t, 5, found.Kinds["mail:sweep"].Attempts)
	assert.Equal(t, "queue mail, scheduler 0123: left out: its definition is missing", found.Left[0])
	assert.Len(t, found.Left, 2)
}

// What BullMQ itself has just written is read: DULY_TEST_BULLMQ is a node_modules with bullmq and ioredis.
func TestBullMQItself(t *testing.T) {
	t.Parallel()
	modules := os.Getenv("DULY_TEST_BULLMQ")
	if modules == "" {
		t.Skip("DULY_TEST_BULLMQ names no node_modules with bullmq and ioredis")
	}
	s := redistest.StartTCP(t)
	cmd := exec.CommandContext(t.Context(), "node", "testdata/bullmq.cjs", s.Addr[strings.LastIndexByte(s.Addr, ':')+1:])
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	schedulers(t, readRedis(t, "bullmq", s))
}

// entry is an entry of a scheduler of asynq, as its protobuf says. The tests of bench read those that asynq itself writes.
func entry(spec, kind, payload string, options ...string) string {
	var out []byte
	for i, field := range append([]string{"id", spec, kind, payload}, options...) {
		out = protowire.AppendTag(out, protowire.Number(min(i+1, 5)), protowire.BytesType)
		out = protowire.AppendString(out, field)
	}
	out = protowire.AppendTag(out, 9, protowire.VarintType) // a field of a later release
	return string(protowire.AppendVarint(out, 7))
}

// Entries of asynq's schedulers are tasks of workers, once for all replicas; what is no entry is named.
func TestAsynq(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := s.Client(t)
	for _, scheduler := range []string{"a", "b"} {
		list := "asynq:schedulers:{" + scheduler + "}"
		require.NoError(t, c.ZAdd(t.Context(), "asynq:schedulers", redis.Z{Score: 1, Member: list}).Err())
		require.NoError(t, c.LPush(t.Context(), list,
			entry("CRON_TZ=Europe/Berlin 0 7 * * *", "email:digest", `{"topic":"engines"}`, `Queue("low")`, "MaxRetry(4)", "Timeout(30s)"),
			entry("@every 30s", "poll", "\xff", `TaskID("the poll")`), entry("@hourly", "sweep", ""), entry("often", "sweep", ""), "\xff",
		).Err())
	}
	found := readRedis(t, "asynq", s)
	assert.Equal(t, []importer.Task{
		{Agent: "ops", ID: "email:digest", Kind: "email:digest", Cron: "0 7 * * *", Zone: "Europe/Berlin", Payload: map[string]any{"topic": "engines"}},
		{Agent: "ops", ID: "the poll", Kind: "poll", Every: "30s", From: "start", Payload: map[string]any{"base64": "/w=="}},
		{Agent: "ops", ID: "sweep", Kind: "sweep", Cron: "@hourly"},
	}, found.Tasks)
	assert.Equal(t, importer.Handler{Worker: &struct{}{}, Attempts: 5, Timeout: "30s"}, found.Kinds["email:digest"])
	left := strings.Join(found.Left, "\n")
	for _, want := range []string{`Queue("low"): duly has no such option`, "its payload is no JSON object", "its zone is that of the scheduler's Location", "entry sweep (often): left out", "left out: it is no entry of asynq", "handlers: "} {
		assert.Contains(t, left, want)
	}
}

// A Redis without schedules, none at all and a URL of something else are errors that say what to give.
func TestNoSchedulesInRedis(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, format := range []string{"asynq", "bullmq"} {
		_, err := importer.ReadRedis(t.Context(), format, s.URL, "ops")
		assert.ErrorContains(t, err, "has no schedules")
		_, err = importer.ReadRedis(t.Context(), format, "redis://:hunter2@127.0.0.1:1/0", "ops")
		require.ErrorContains(t, err, "read the Redis of "+format)
		assert.NotContains(t, err.Error(), "hunter2")
		_, err = importer.ReadRedis(t.Context(), format, "nowhere", "ops")
		assert.Equal(t, core.CodeInvalid, core.CodeOf(err))
		_, err = importer.Read(format, nil, "ops")
		assert.ErrorContains(t, err, "give its URL in place of the file")
	}
}
