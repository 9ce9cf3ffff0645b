// Package layout is what Redis holds, as values of Go: names of keys, records, and the arguments and replies of scripts and commands.
package layout

// Names of keys: prefix, hash tag, and the encoding of ids, which may have any characters.

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// slots is the number of hash slots of a Redis Cluster.
// The number is part of Redis Cluster's protocol, and fixed.
const slots = 16384

// Partition spells the fixed keys of one partition. All of them, and those that the scripts derive from them, contain
// one hash tag, so that they live in one slot of a cluster.
type Partition struct {
	// For example "duly:{3}:", to which "agenda" or "queue:3:ann" is appended.
	Base string // prefix, hash tag and colon: the beginning of every key of the partition
}

// Key is the full name of one key of the partition.
func (p Partition) Key(name string) string { return p.Base + name }

// Keys are the KEYS of a script, by the names in its header; agenda always comes first, for layout.lua.
func (p Partition) Keys(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = p.Key(name)
	}
	return out
}

// PartitionsOf are the n partitions under a prefix. Partition i has its slot in the i-th of n equal parts of the slot
// range, so that the partitions spread evenly over the masters of a cluster.
func PartitionsOf(prefix string, n int) []Partition {
	out := make([]Partition, n)
	for i := range out {
		out[i] = Partition{Base: fmt.Sprintf("%s{%s}:", prefix, Tag(i, n))}
	}
	return out
}

// Tag is the first of "i", "i.0", "i.1", ... whose slot lies in the i-th of n equal parts.
// A tag starts as the plain number, and most keep it: a search over a handful of
// candidates, made once when a store is opened. The tags are part of the stored layout, so
// this function must never give another answer.
func Tag(i, n int) string {
	// n is a power of two, and so is the number of slots: all parts have the same size.
	part := slots / n
	name := strconv.Itoa(i)
	for k := 0; int(crc16(name))%slots/part != i; k++ {
		name = strconv.Itoa(i) + "." + strconv.Itoa(k)
	}
	return name
}

// crc16 is CRC-16/XMODEM, which Redis Cluster assigns slots by. It runs at start only.
// A table of 256 entries would be faster, and is not worth its bytes for a few hundred short names.
func crc16(s string) uint16 {
	var crc uint16
	for i := range len(s) {
		crc ^= uint16(s[i]) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021
			}
		}
	}
	return crc
}

// GroupKey is what the scripts put after "group:" for a group of an agent; empty for no group.
// Agent and group are encoded apart, so that the colon between them is the only one.
func GroupKey(agent, group string) string {
	if group == "" {
		return ""
		// The empty string is how scripts recognise a task without a group.
	}
	return GroupOf(Encode(agent), group)
}

// GroupOf is the member of a group whose agent is encoded already.
func GroupOf(agent, group string) string {
	if group == "" {
		return ""
	}
	return agent + ":" + Encode(group)
}

// placeLen is the length of a place: level and sequence number, which say where in the queues of its agent a task is.
const placeLen = 1 + seqLen

// RunRef is what a claim notes of a run for when it ends: the encoded agent, a colon, and the place of the task.
func RunRef(agent, task string) string {
	return agent + ":" + task[seqLen:placeLen] + task[:seqLen]
}

// AgentRef is the encoded agent of a run, as its claim gave it; a run that was made by hand has it encoded here.
func AgentRef(r *store.Run) string {
	if n := len(r.Ref) - placeLen - 1; n > 0 {
		return r.Ref[:n]
	}
	return Encode(r.Agent)
}

// PlaceOf is the place of a run's task; empty if the run was made by hand.
func PlaceOf(r *store.Run) string {
	if n := len(r.Ref) - placeLen; n > 0 {
		return r.Ref[n:]
	}
	return ""
}

// Encode turns any string into one of letters, digits and "._-%" only, and never two strings into the same one: no
// colon, brace or glob character of an id reaches a key.
func Encode(id string) string {
	// Nearly all ids are plain, and need neither a copy nor an allocation.
	for i := range len(id) {
		if !plain(id[i]) {
			return escape(id, i)
		}
	}
	return id
}

// escape is encode for an id whose character at from is the first that is not plain.
func escape(id string, from int) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	b.Grow(len(id) + 16)
	b.WriteString(id[:from])
	// Byte by byte and not by rune: invalid UTF-8 survives as well, and two ids
	// that differ in it stay different.
	for i := from; i < len(id); i++ {
		if c := id[i]; plain(c) {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}

// plain reports whether a byte needs no escaping. The per cent sign does, as it begins an escape.
func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
}

// Decode is the inverse of encode.
// It accepts lower-case digits too, but Redis never has a name with them: only encode writes names.
func Decode(name string) (string, error) {
	if strings.IndexByte(name, '%') < 0 {
		return name, nil
	}
	out := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		if name[i] != '%' {
			out = append(out, name[i])
			continue
		}
		if i+2 >= len(name) {
			return "", fmt.Errorf("malformed name %q", name)
		}
		c, err := strconv.ParseUint(name[i+1:i+3], 16, 8)
		if err != nil {
			return "", fmt.Errorf("malformed name %q", name)
		}
		out = append(out, byte(c))
		i += 2
	}
	return string(out), nil
}

// ParseScope is the inverse of scopeArg.
func ParseScope(name string) (store.Target, error) {
	letter, rest, _ := strings.Cut(name, ":")
	switch letter {
	case "t":
		agent, id, _ := strings.Cut(rest, ":")
		agent, err := Decode(agent)
		return store.Target{Agent: agent, ID: id}, err
	case "a":
		agent, err := Decode(rest)
		return store.Target{Agent: agent}, err
	case "k":
		return store.Target{Kind: rest}, nil
	case "s":
		key, err := Decode(rest)
		return store.Target{Key: key}, err
	default:
		return store.Target{}, nil
	}
}
