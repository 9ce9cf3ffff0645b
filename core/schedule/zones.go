package schedule

// Time zones: their rules are part of the program, as not every host has them.

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// zones.gz holds the rules of all zones, so that they are known wherever the program runs. It says what time/tzdata says in a
// tenth of the bytes, each of which a function's cold start loads: `make generate` writes it from the database that Go brings.
//
// Unpacked it is a line for each set of rules, with the names of its zones and its length; an empty line; the rules one after the
// other, each as in a TZif file but without the times of its transitions; then, for all of them, the time between each
// transition and the one before it, as a varint: these repeat.
//
//go:embed zones.gz
var packedZones []byte

// zones are the rules of the zones in zones.gz. They are unpacked when a zone is asked for that the machine does not know.
// A machine with a zone database never needs them.
var zones = sync.OnceValues(func() (map[string]string, error) {
	r, err := gzip.NewReader(bytes.NewReader(packedZones))
	if err != nil {
		return nil, err
	}
	all, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	head, rest, _ := strings.Cut(string(all), "\n\n")
	var bare, names []string
	// Each set of rules has several names, as many zones share one.
	for line := range strings.SplitSeq(head, "\n") {
		these, length, _ := strings.Cut(line, " ")
		n, err := strconv.Atoi(length)
		if err != nil || n > len(rest) {
			return nil, fmt.Errorf("%q has %q bytes", these, length)
		}
		bare, names, rest = append(bare, rest[:n]), append(names, these), rest[n:]
	}
	rules, gaps := map[string]string{}, []byte(rest)
	for i := range bare {
		var whole string
		if whole, gaps, err = timed(bare[i], gaps); err != nil {
			return nil, fmt.Errorf("%q: %w", names[i], err)
		}
		for name := range strings.SplitSeq(names[i], ",") {
			rules[name] = whole
		}
	}
	return rules, nil
})

// transitions are where the times of the transitions begin in a TZif file (RFC 9636), and how long they are: those in the part
// that has 64 bits for each, which lies behind the one that has 32. It looks at nothing behind where they begin.
// Only version 2 and later files have that part, and all of those that Go brings do.
func transitions(rules string) (at, length int) {
	const head, counts = 44, 20
	count := func(at int) (n [6]int) { // of UT indicators, standard indicators, leap seconds, transitions, types and letters
		for i := range n {
			n[i] = int(binary.BigEndian.Uint32([]byte(rules[at+counts+4*i:][:4])))
		}
		return n
	}
	n := count(0)
	at = head + 5*n[3] + 6*n[4] + n[5] + 8*n[2] + n[1] + n[0]
	return at + head, 8 * count(at)[3]
}

// timed puts the times of their transitions into rules. It takes the gaps between them from the first of some, and returns the
// rest.
// The gaps were written for all rules together, as equal ones pack well.
func timed(rules string, gaps []byte) (string, []byte, error) {
	at, length := transitions(rules)
	whole, now := make([]byte, 0, len(rules)+length), int64(0)
	whole = append(whole, rules[:at]...)
	for range length / 8 {
		gap, n := binary.Varint(gaps)
		if n <= 0 {
			return "", nil, io.ErrUnexpectedEOF
		}
		now, gaps = now+gap, gaps[n:]
		whole = binary.BigEndian.AppendUint64(whole, uint64(now)) //nolint:gosec // as it is stored
	}
	return string(append(whole, rules[at:]...)), gaps, nil
}

// LoadZone is the zone with an IANA name: as the machine knows it, else as this package does.
// The machine's rules come first, as they may be newer than this program.
func LoadZone(name string) (*time.Location, error) {
	// "Local" is the one name that Go knows and that is no zone.
	if name == "Local" {
		return nil, refused("zone", "%q is another one on each machine: name an IANA zone, such as Europe/Berlin", name)
	}
	location, err := time.LoadLocation(name)
	if err == nil {
		return location, nil
	}
	if location, err = packedZone(name); err != nil {
		return nil, refused("zone", "%q is not known: it must be an IANA name, such as Europe/Berlin", name)
	}
	return location, nil
}

// packedZone is the zone by the rules of this package; rules that are missing fail to load.
func packedZone(name string) (*time.Location, error) {
	rules, err := zones()
	if err != nil {
		return nil, fmt.Errorf("unpack zones.gz: %w", err)
	}
	return time.LoadLocationFromTZData(name, []byte(rules[name]))
}
