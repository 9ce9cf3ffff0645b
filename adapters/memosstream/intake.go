package memosstream

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/adapters/internal/memosmessage"
	"github.com/seed-6f6f2c11/duly/core"
)

// The intake: its settings, and the loop that finds streams, reads them and waits for more.

// DefaultPrefix is how the names of MemOS's streams begin, unless its variables MEMSCHEDULER_REDIS_STREAM_KEY_PREFIX or
// MEMSCHEDULER_STREAM_KEY_PREFIX say otherwise.
const DefaultPrefix = memosmessage.DefaultPrefix

// What MemOS and duly call themselves at a stream. All processes of duly are one consumer: a process that rereads another's
// entries makes the same tasks, and no clean-up is needed after a process that has died.
const (
	group    = "scheduler_group"
	consumer = "duly"
)

// The pace of the intake.
const (
	lookEvery  = 10 * time.Second // for new streams; a read waits no longer than that
	claimEvery = 5 * time.Minute  // entries that other consumers left behind, and records that were not written
	restFor    = 5 * time.Second  // after a failure, and of a stream whose agent may have no more tasks
	lastWrites = 5 * time.Second  // for what was read before the end
)

// Bounds of one command: how many streams it reads, and how many entries of each.
const (
	mostStreams = 64
	mostEntries = 16
)

// Config says which streams are read. Every zero but URL is a good default.
type Config struct {
	// URL of the Redis, a single server, as MemOS uses it: redis://, rediss:// or unix://.
	URL string
	// CAFile, CertFile and KeyFile are files in PEM for a URL with TLS, as those of the store.
	CAFile, CertFile, KeyFile string
	// Options are used instead of URL when set. MaxRetries and ContextTimeoutEnabled are overwritten.
	Options *redis.Options
	// Prefix of the streams' names: if empty, what MemOS's variables say, or DefaultPrefix.
	Prefix string
	// Dead is the stream where entries are set aside that can never become a task: DeadStream if empty.
	Dead string
	// Clock is core.SystemClock if nil.
	Clock core.Clock
	// Logger gets what was set aside and what failed. Nothing is logged if nil.
	Logger *slog.Logger
}

// Intake reads streams. Give its Event to core.Config.OnEvent and the scheduler to Run.
type Intake struct {
	config Config
	client *redis.Client // for all but reads that wait
	reader *redis.Client // closed to end a read that waits
	mirror *mirror
	labels sync.Map // of the messages: the kinds whose events matter
	found  atomic.Int64

	// Only Run uses these.
	scheduler *core.Scheduler
	streams   map[string]*stream
	cursor    uint64 // where the search for streams continues
	mending   mending
	broken    bool // the last round failed, and that was logged
}

// stream is what Run knows of a stream.
type stream struct {
	owes  bool      // entries may be pending that this consumer was sent
	rests time.Time // nothing is read before
}

// New makes an intake, which has to be closed. It connects when it has something to do. The error is about the settings.
func New(config Config) (*Intake, error) {
	config.Prefix, config.Dead = cmp.Or(config.Prefix, memosmessage.StreamPrefix()), cmp.Or(config.Dead, DeadStream)
	config.Logger = cmp.Or(config.Logger, slog.New(slog.DiscardHandler))
	if config.Clock == nil {
		config.Clock = core.SystemClock{}
	}
	options, err := config.options()
	if err != nil {
		return nil, err
	}
	i := &Intake{config: config, client: redis.NewClient(options), reader: redis.NewClient(options), streams: map[string]*stream{}}
	i.mirror = newMirror(i)
	go i.mirror.run(context.Background()) //nolint:forbidigo // until Close, whoever is done before
	return i, nil
}

// Streams is how many streams are read, for people.
func (i *Intake) Streams() int { return int(i.found.Load()) }

// Run reads until ctx is done. What fails is logged and tried again; an entry that was read and not stored stays pending.
// Close the intake when no more runs can end.
func (i *Intake) Run(ctx context.Context, s *core.Scheduler) error {
	i.scheduler = s
	// A read that waits ends with its connection: what it was sent and could not return is pending.
	stop := context.AfterFunc(ctx, func() { _ = i.reader.Close() })
	defer stop()
	var looked, claimed time.Time
	for ctx.Err() == nil {
		now := i.config.Clock.Now()
		if err := i.round(ctx, now, &looked, &claimed); err != nil && ctx.Err() == nil {
			i.failed(ctx, err)
			i.sleep(ctx, restFor)
		} else if i.broken && err == nil {
			i.broken = false
			i.config.Logger.LogAttrs(ctx, slog.LevelInfo, "the streams of MemOS are read again")
		}
	}
	return nil
}

// Close writes what is still to be said of tasks, and ends the connections. Call it once, after Run and after the last event: runs may
// end, and have a record in MemOS's tracker, after nothing is read any more.
func (i *Intake) Close() {
	close(i.mirror.ending)
	<-i.mirror.ended
	_ = i.reader.Close() // a failure to close what is no longer used means nothing
	_ = i.client.Close()
}

// failed logs the first failure of a row: a Redis that is away for an hour is one fact.
func (i *Intake) failed(ctx context.Context, err error) {
	if !i.broken {
		i.config.Logger.LogAttrs(ctx, slog.LevelWarn, "the streams of MemOS cannot be read, will retry", slog.Any("err", err))
	}
	i.broken = true
	for _, st := range i.streams { // a reply may have been lost with its entries
		st.owes = true
	}
}

// round looks for streams, for abandoned entries and for records to mend if it is time to, then reads what is new, or waits for it.
func (i *Intake) round(ctx context.Context, now time.Time, looked, claimed *time.Time) error {
	if looked.IsZero() || now.Sub(*looked) >= lookEvery {
		if err := i.look(ctx); err != nil {
			return err
		}
		*looked = now
	}
	if claimed.IsZero() || now.Sub(*claimed) >= claimEvery {
		if err := i.claim(ctx); err != nil {
			return err
		}
		if err := i.mend(ctx); err != nil {
			return err
		}
		*claimed = now
	}
	if err := i.settle(ctx); err != nil {
		return err
	}
	return i.new(ctx, i.awake(now), lookEvery-now.Sub(*looked))
}

// new reads what is new in streams, or waits for it.
func (i *Intake) new(ctx context.Context, names []string, wait time.Duration) error {
	for first := 0; first < len(names); first += mostStreams {
		n, err := i.read(ctx, names[first:min(first+mostStreams, len(names))], ">", mostEntries, -1)
		if err != nil {
			return err
		}
		if n > 0 {
			wait = 0
		}
	}
	if len(names) < len(i.streams) { // one rests, and is due before a read that waits for the others may end
		wait = min(wait, restFor)
	}
	switch {
	case wait < time.Millisecond: // which Redis would take for no end
		return nil
	case len(names) == 0:
		i.sleep(ctx, wait)
		return nil
	}
	_, err := i.read(ctx, names, ">", 1, wait)
	return err
}

// awake are the streams that do not rest.
func (i *Intake) awake(now time.Time) []string {
	var names []string
	for name, st := range i.streams {
		if !now.Before(st.rests) {
			names = append(names, name)
		}
	}
	return names
}

// settle rereads the entries that this consumer was sent and that were not acknowledged: after a crash, a failure or a rest.
func (i *Intake) settle(ctx context.Context) error {
	for _, name := range i.awake(i.config.Clock.Now()) {
		for st := i.streams[name]; st.owes; {
			n, err := i.read(ctx, []string{name}, "0", mostEntries, -1)
			if err != nil {
				return err
			}
			// What rests now is still pending.
			if n == 0 || i.config.Clock.Now().Before(st.rests) {
				st.owes = n > 0
				break
			}
		}
	}
	return nil
}

// read reads entries of streams from an id on, and takes them in. It waits for the first one unless wait is negative. It returns how
// many there were.
func (i *Intake) read(ctx context.Context, names []string, from string, count int64, wait time.Duration) (int, error) {
	client, args := i.client, make([]string, 0, 2*len(names))
	if wait > 0 {
		client = i.reader
	}
	args = append(args, names...)
	for range names {
		args = append(args, from)
	}
	found, err := client.XReadGroup(ctx, &redis.XReadGroupArgs{Group: group, Consumer: consumer, Streams: args, Count: count, Block: wait}).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return 0, nil
	case err != nil && (redis.HasErrorPrefix(err, "NOGROUP") || redis.HasErrorPrefix(err, "UNBLOCKED") || redis.HasErrorPrefix(err, "WRONGTYPE")):
		return 0, i.join(ctx, names) // a stream was deleted, or made again
	case err != nil:
		return 0, err
	}
	n := 0
	for _, s := range found {
		n += len(s.Messages)
		if err := i.take(ctx, s.Stream, s.Messages); err != nil {
			return n, err
		}
	}
	return n, nil
}

// sleep waits, or until ctx is done.
func (i *Intake) sleep(ctx context.Context, d time.Duration) {
	over := make(chan struct{})
	stop := i.config.Clock.AfterFunc(d, func() { close(over) })
	defer stop()
	select {
	case <-over:
	case <-ctx.Done():
	}
}

// labelOf is the label in the name of a stream: what follows the last colon.
func labelOf(name string) string { return name[strings.LastIndexByte(name, ':')+1:] }
