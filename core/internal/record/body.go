package record

// The body: what a task is, written once when it is submitted or replaced.

import (
	"time"
	"unsafe"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Body is the part of a task that its runs never change.
// A store keeps it as opaque bytes, and hands it out with every claim.
type Body struct {
	Payload    []byte
	Every      time.Duration
	Cron, Zone string
	FromStart  bool // Every counts from the nominal time of a run, not from its end; flags are grouped to take little room
	MatchAll   bool // both days of a cron expression have to match
	GapSkip    bool // a local time that does not exist is skipped
	Urgent     bool // it starts in the quiet hours of its agent, if the agent's profile allows it
	Manual     bool // it is due only when it is run by hand; Every means nothing then
	Jitter     time.Duration
	Overlap    string
	Misfire    string
	// PauseAfter has three meanings: zero is the kind's setting, a negative number
	// never, any other a number of failures.
	PauseAfter  int
	MinInterval time.Duration
	LimitKey    string
	Parent      string        // the id of the recurring task of which this is one occurrence
	Occurrence  moment.Millis // the time of that occurrence
	Activity    *Activity
	MaxAttempts int
	Backoff     time.Duration
	Timeout     time.Duration
	Lease       time.Duration
	Group       string

	TraceID, Traceparent, SessionID, UserID string
	Info                                    []byte
	Tags                                    []string
	Labels                                  []string  // each as its name, a zero byte and its value
	Origin                                  *Origin   // nil for a task that no run has submitted
	Callback                                *Callback // nil for a task without a callback
	Expects                                 *Expectation
}

// Activity is how an activity task responds to activity.
// It is stored in its own rows, which exist only for activity tasks.
type Activity struct {
	store.Pulse

	MaxFailures int
}

// Callback is the URL that is notified how a task ended. It is stored in its own row, and takes no room in tasks that have none.
type Callback struct{ URL string }

// Expectation is within which time a task is to succeed, and what is notified when it has not. It takes no room in tasks that have none.
type Expectation struct {
	Within time.Duration
	Notify string
}

// FormerLabels are the names of two labels that had fields of their own, in records and in JSON, before there were labels. Only what earlier
// versions have written is read for them.
var FormerLabels = [...]string{"mem_cube_id", "user_name"}

// The order of the rows is the order of the bytes, and has grown with the fields: it is not that of the
// struct. Tasks of two binaries are compared by their bytes.
var bodies = tableOf(rows{
	{number: 1, form: formRaw, at: unsafe.Offsetof(Body{}.Payload)},
	{number: 2, form: formSpan, at: unsafe.Offsetof(Body{}.Every)},
	{number: 3, form: formFlag, at: unsafe.Offsetof(Body{}.FromStart)},
	{number: 17, form: formText, at: unsafe.Offsetof(Body{}.Cron)},
	{number: 18, form: formText, at: unsafe.Offsetof(Body{}.Zone)},
	{number: 19, form: formFlag, at: unsafe.Offsetof(Body{}.MatchAll)},
	{number: 20, form: formFlag, at: unsafe.Offsetof(Body{}.GapSkip)},
	{number: 21, form: formSpan, at: unsafe.Offsetof(Body{}.Jitter)},
	{number: 22, form: formText, at: unsafe.Offsetof(Body{}.Overlap)},
	{number: 23, form: formText, at: unsafe.Offsetof(Body{}.Misfire)},
	{number: 24, form: formInt, at: unsafe.Offsetof(Body{}.PauseAfter)},
	{number: 25, form: formSpan, at: unsafe.Offsetof(Body{}.MinInterval)},
	{number: 26, form: formText, at: unsafe.Offsetof(Body{}.LimitKey)},
	{number: 27, form: formText, at: unsafe.Offsetof(Body{}.Parent)},
	{number: 28, form: formCount, at: unsafe.Offsetof(Body{}.Occurrence)},
	// Delay and MaxWait are stored plus one: zero is not written, and the first of them says that there is an activity.
	activity(29, func(w *wire, n uint64, a *Activity) { w.int(n, a.Delay.Milliseconds()+1) },
		func(a *Activity, v int64) { a.Delay = time.Duration(v-1) * time.Millisecond }),
	activity(31, func(w *wire, n uint64, a *Activity) { w.int(n, int64(a.MaxFailures)) },
		func(a *Activity, v int64) { a.MaxFailures = int(v) }),
	activity(30, func(w *wire, n uint64, a *Activity) {
		if a.Debounce {
			w.int(n, a.MaxWait.Milliseconds()+1)
		}
	}, func(a *Activity, v int64) { a.Debounce, a.MaxWait = true, time.Duration(v-1)*time.Millisecond }),
	{number: 4, form: formInt, at: unsafe.Offsetof(Body{}.MaxAttempts)},
	{number: 5, form: formSpan, at: unsafe.Offsetof(Body{}.Backoff)},
	{number: 6, form: formSpan, at: unsafe.Offsetof(Body{}.Timeout)},
	{number: 7, form: formSpan, at: unsafe.Offsetof(Body{}.Lease)},
	{number: 8, form: formText, at: unsafe.Offsetof(Body{}.Group)},
	{number: 9, form: formText, at: unsafe.Offsetof(Body{}.TraceID)},
	{number: 10, form: formText, at: unsafe.Offsetof(Body{}.Traceparent)},
	{number: 11, form: formText, at: unsafe.Offsetof(Body{}.SessionID)},
	{number: 12, form: formText, at: unsafe.Offsetof(Body{}.UserID)},
	formerLabel(13, FormerLabels[0]),
	formerLabel(14, FormerLabels[1]),
	{number: 15, form: formRaw, at: unsafe.Offsetof(Body{}.Info)},
	{number: 16, form: formTexts, at: unsafe.Offsetof(Body{}.Tags)},
	{number: 32, form: formTexts, at: unsafe.Offsetof(Body{}.Labels)},
	{number: 33, form: formFlag, at: unsafe.Offsetof(Body{}.Urgent)},
	origin(34, unsafe.Offsetof(Body{}.Origin)),
	{number: 35, form: formFlag, at: unsafe.Offsetof(Body{}.Manual)},
	{
		number: 36, form: formOwn, at: unsafe.Offsetof(Body{}.Callback),
		write: func(w *wire, n uint64, at unsafe.Pointer) {
			if c := *(**Callback)(at); c != nil {
				w.str(n, c.URL)
			}
		},
		read: func(at unsafe.Pointer, _ int64, b []byte) { *(**Callback)(at) = &Callback{URL: string(b)} },
	},
	expects(37, func(w *wire, n uint64, e *Expectation) { w.int(n, e.Within.Milliseconds()) },
		func(e *Expectation, v int64, _ []byte) { e.Within = time.Duration(v) * time.Millisecond }),
	expects(38, func(w *wire, n uint64, e *Expectation) { w.str(n, e.Notify) },
		func(e *Expectation, _ int64, b []byte) { e.Notify = string(b) }),
})

// expects is a row of an expectation.
func expects(n uint64, write func(w *wire, n uint64, e *Expectation), read func(e *Expectation, v int64, b []byte)) field {
	return field{
		number: n, form: formOwn, at: unsafe.Offsetof(Body{}.Expects),
		write: func(w *wire, n uint64, at unsafe.Pointer) {
			if e := *(**Expectation)(at); e != nil {
				write(w, n, e)
			}
		},
		read: func(at unsafe.Pointer, v int64, b []byte) {
			e := (**Expectation)(at)
			if *e == nil {
				*e = &Expectation{}
			}
			read(*e, v, b)
		},
	}
}

// formerLabel is a row that is never written: what an earlier version has written there becomes a label.
func formerLabel(n uint64, name string) field {
	return field{
		number: n, form: formOwn, at: unsafe.Offsetof(Body{}.Labels), write: func(*wire, uint64, unsafe.Pointer) {},
		read: func(at unsafe.Pointer, _ int64, b []byte) {
			labels := (*[]string)(at)
			*labels = append(*labels, name+"\x00"+string(b))
		},
	}
}

// activity is a row of the activity, which exists once one of its fields does.
func activity(n uint64, write func(w *wire, n uint64, a *Activity), read func(a *Activity, v int64)) field {
	return field{
		number: n, form: formOwn, at: unsafe.Offsetof(Body{}.Activity),
		write: func(w *wire, n uint64, at unsafe.Pointer) {
			if a := *(**Activity)(at); a != nil {
				write(w, n, a)
			}
		},
		read: func(at unsafe.Pointer, v int64, _ []byte) {
			a := (**Activity)(at)
			if *a == nil {
				*a = &Activity{}
			}
			read(*a, v)
		},
	}
}

// Encode is the body as it is stored.
// The room is a guess: most bodies are their payload and a few fields.
func (b *Body) Encode() []byte { return bodies.encode(unsafe.Pointer(b), 32+len(b.Payload)) }

// DecodeBody reads a body, which aliases data. With an error it has what was read before.
func DecodeBody(data []byte) (Body, error) {
	var b Body
	err := b.Decode(data)
	return b, err
}

// Decode is DecodeBody into b, which has to be zero.
func (b *Body) Decode(data []byte) error { return bodies.decode(data, unsafe.Pointer(b)) }
