// Package script is the scripts of the store on Redis as they are sent: which there are, of which parts each is made, and its hash.
package script

import (
	"bytes"
	"compress/gzip"
	"crypto/sha1" //nolint:gosec // EVALSHA names scripts by SHA-1; nothing is secured by it
	_ "embed"     // of the scripts
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

// packed are the files of scripts/, each as a source, as JSON by name, compressed: `make generate` writes it, and a test fails when
// that was forgotten.
//
//go:embed scripts.json.gz
var packed []byte

// Source is one file of scripts/ as it is packed. Go reads its properties from its header, so that they are written once.
type Source struct {
	Text string   `json:"text"`           // without comments, and with the values of its constants in their places
	Keys []string `json:"keys,omitempty"` // of a script: the names of its KEYS, in order
	// Needs are the parts that precede it, in order; layout, which is in front of every script, is not named.
	Needs []string `json:"needs,omitempty"`
	// Replace are the parts of a script that has a second form, which can replace tasks.
	Replace []string `json:"replace,omitempty"`
	// Then are the parts after a script that few of its calls reach.
	Then []string `json:"then,omitempty"`
}

// Sources are all files of scripts/, unpacked once and only when a server lacks a script. Damage here is damage of the binary itself, so it panics.
var Sources = sync.OnceValue(func() map[string]Source {
	var files map[string]Source
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err == nil {
		err = json.NewDecoder(r).Decode(&files)
	}
	if err != nil {
		panic("redisstore: scripts.json.gz is damaged: " + err.Error())
	}
	return files
})

const (
	partLayout  = "layout"  // describes a partition, and is in front of every script
	partTasks   = "tasks"   // places live tasks, and comes next but in plain scripts
	partAnswers = "answers" // keeps the answers of a script: its calls name their caller
)

// Script is a file of scripts/ with its parts in front of it, as Redis gets it.
// Its text is the same for every call, so that Redis finds it by its hash after the first.
type Script struct {
	Name string
	Keys []string
	SHA  string
	Text func() string // put together when a server does not know it
	// Answers is set if the script keeps its answers, and takes the caller as an additional last argument.
	Answers bool
}

// All are the scripts, one for each verb; replace is submit with what it takes to replace tasks.
// It is a text of its own, as each call pays for all that is loaded, and submits that
// replace nothing are by far the most frequent. The plain ones are the common case of three verbs: see plain.go.
type All struct {
	Submit, Replace, Touch, Claim, Next, Settle, Extend, Charge, Back, Replay, Order, Hold, Limit, Permit, Budgets, Profile, Quotas, Replan, Forget, Read, List, Find, Agents, Pauses, Kinds, Audit, Sweep, Presence, Book, Signal, Receive, Tally, Recent, Publish, Follow, Stamp, Repartition Script

	PlainSubmit, PlainClaim, PlainSettle, PlainStart Script
}

// Form is what is in front of a script.
type Form byte

// What is in front of scripts.
const (
	formWhole   Form = 'w' // the parts that it needs, after tasks
	FormReplace Form = 'r' // the same, with the parts that replace tasks
	formPlain   Form = 'p' // the parts that it needs alone
)

// Each names all scripts.
func (s *All) Each(do func(to *Script, name string, f Form)) {
	for _, of := range []struct {
		to   *Script
		name string
	}{
		{&s.Submit, "submit"},
		{&s.Touch, "touch"},
		{&s.Claim, "claim"},
		{&s.Next, "next"},
		{&s.Settle, "settle"},
		{&s.Charge, "charge"},
		{&s.Back, "back"},
		{&s.Replay, "replay"},
		{&s.Order, "order"},
		{&s.Hold, "hold"},
		{&s.Limit, "limit"},
		{&s.Permit, "permit"},
		{&s.Budgets, "budgets"},
		{&s.Profile, "profile"},
		{&s.Quotas, "quotas"},
		{&s.Replan, "replan"},
		{&s.Forget, "forget"},
		{&s.Read, "read"},
		{&s.List, "list"},
		{&s.Find, "find"},
		{&s.Agents, "agents"},
		{&s.Pauses, "pauses"},
		{&s.Kinds, "kinds"},
		{&s.Audit, "audit"},
		{&s.Sweep, "sweep"},
		{&s.Presence, "presence"},
		{&s.Book, "book"},
		{&s.Signal, "signal"},
		{&s.Receive, "receive"},
		{&s.Tally, "tally"},
		{&s.Recent, "recent"},
		{&s.Publish, "publish"},
		{&s.Follow, "follow"},
		{&s.Stamp, "stamp"},
		{&s.Repartition, "repartition"},
	} {
		do(of.to, of.name, formWhole)
	}
	do(&s.Replace, "submit", FormReplace)
	do(&s.PlainSubmit, "plainsubmit", formPlain)
	do(&s.PlainClaim, "plainclaim", formPlain)
	do(&s.PlainSettle, "plainsettle", formPlain)
	do(&s.PlainStart, "plainstart", formPlain)
	do(&s.Extend, "extend", formPlain)
	// For the script that is sent instead when the answer was lost.
	s.PlainSubmit.Answers, s.PlainStart.Answers = true, true
}

// Index has a line for each script: its form and name, its hash, the names of its KEYS and whether it keeps answers. It is made with scripts.json.gz, so that no start
// puts all scripts together to hash them.
//
//go:embed scripts.index
var Index string

// Load reads the scripts; change, if not nil, is applied to each text, which tests use to hold time still.
func Load(change func(text string) string) All {
	var all All
	if change != nil {
		all.Each(func(to *Script, name string, f Form) { *to = Hashed(Sources(), name, f, change) })
		return all
	}
	known := make(map[string][]string, 64)
	for line := range strings.Lines(Index) {
		if of := strings.Fields(line); len(of) == 4 {
			known[of[0]] = of
		}
	}
	all.Each(func(to *Script, name string, f Form) {
		of, ok := known[string(f)+name]
		if !ok {
			panic("redisstore: " + name + ".lua is not in the index: run make generate")
		}
		text := sync.OnceValue(func() string { return assemble(Sources(), name, f) })
		*to = Script{Name: name, SHA: of[1], Keys: strings.Split(of[2], ","), Answers: of[3] == "yes", Text: text}
	})
	return all
}

// partsOf are the parts in front of a script. The order matters: Lua sees a local function only below the line that declares it.
func partsOf(files map[string]Source, name string, f Form) []string {
	switch of := files[name]; f {
	case formPlain:
		return append([]string{partLayout}, of.Needs...)
	case FormReplace:
		return append([]string{partLayout, partTasks}, of.Replace...)
	default:
		return append([]string{partLayout, partTasks}, of.Needs...)
	}
}

// assemble puts a script together of files.
func assemble(files map[string]Source, name string, f Form) string {
	var b strings.Builder
	for _, part := range partsOf(files, name, f) {
		b.WriteString(files[part].Text + "\n")
	}
	b.WriteString(files[name].Text)
	for _, part := range files[name].Then {
		b.WriteString("\n" + files[part].Text)
	}
	return b.String()
}

// Hashed is a script whose text is changed, with its hash: SHA-1, as Redis finds the script by it.
func Hashed(files map[string]Source, name string, f Form, change func(text string) string) Script {
	text := change(assemble(files, name, f))
	sum := sha1.Sum([]byte(text)) //nolint:gosec // see the import
	return Script{
		Name: name, Keys: files[name].Keys, SHA: hex.EncodeToString(sum[:]), Answers: slices.Contains(partsOf(files, name, f), partAnswers),
		Text: func() string { return text },
	}
}
