package schedule

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
// tenth of the bytes, each of which a function's cold start loads: `make zones` writes it from the database that Go brings.
//
// Unpacked it is a line for each zone, with its name and the length of its rules, an empty line, then the rules one after the
// other, each as in a TZif file, but with the time between a transition and the one before it instead of its own: these repeat.
//
//go:embed zones.gz
var packedZones []byte

// zones are the rules of the zones in zones.gz. They are unpacked when a zone is asked for that the machine does not know.
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
	rules := map[string]string{}
	for line := range strings.SplitSeq(head, "\n") {
		name, length, _ := strings.Cut(line, " ")
		n, err := strconv.Atoi(length)
		if err != nil || n > len(rest) {
			return nil, fmt.Errorf("zone %q has %q bytes", name, length)
		}
		rules[name], rest = string(summed([]byte(rest[:n]))), rest[n:]
	}
	return rules, nil
})

// transitions are the times in the part of a TZif file (RFC 9636) that has 64 bits for each, which lies behind the one that has
// 32; none if it has no such part.
func transitions(rules []byte) []byte {
	const head, counts = 44, 20
	length := func(at, bits int) (times, all int) {
		var n [6]int // of UT indicators, standard indicators, leap seconds, transitions, types and letters
		for i := range n {
			n[i] = int(binary.BigEndian.Uint32(rules[at+counts+4*i:]))
		}
		times = n[3] * bits
		return times, times + n[3] + 6*n[4] + n[5] + n[2]*(bits+4) + n[1] + n[0]
	}
	if len(rules) < head {
		return nil
	}
	_, first := length(0, 4)
	second := head + first
	if len(rules) < second+head {
		return nil
	}
	times, _ := length(second, 8)
	return rules[second+head:][:times]
}

// summed turns the times between the transitions of some rules into those of the transitions, in place.
func summed(rules []byte) []byte {
	times, at := transitions(rules), uint64(0)
	for i := 0; i < len(times); i += 8 {
		at += binary.BigEndian.Uint64(times[i:])
		binary.BigEndian.PutUint64(times[i:], at)
	}
	return rules
}

// loadZone is the zone with an IANA name: as the machine knows it, else as this package does.
func loadZone(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, fmt.Errorf("zone %q is another one on each machine: name an IANA zone, such as Europe/Berlin", name)
	}
	location, err := time.LoadLocation(name)
	if err == nil {
		return location, nil
	}
	if location, err = packedZone(name); err != nil {
		return nil, fmt.Errorf("zone %q is not known: it must be an IANA name, such as Europe/Berlin", name)
	}
	return location, nil
}

func packedZone(name string) (*time.Location, error) {
	rules, err := zones()
	if err != nil {
		return nil, fmt.Errorf("unpack zones.gz: %w", err)
	}
	return time.LoadLocationFromTZData(name, []byte(rules[name]))
}
