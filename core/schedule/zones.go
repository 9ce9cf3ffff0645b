package schedule

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// zones.gz holds the rules of all zones, so that they are known wherever the program runs. It says what time/tzdata says in a
// fifth of the bytes, each of which a function's cold start loads: `make zones` writes it from the database that Go brings.
//
// Unpacked it is a line for each zone, with its name and the length of its rules, an empty line, then the rules one after the
// other, each as in a TZif file.
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
		rules[name], rest = rest[:n], rest[n:]
	}
	return rules, nil
})

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
