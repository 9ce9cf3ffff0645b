package redisstore

// Which scripts there are, and how they are loaded.

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

// source is one file of scripts/ as it is packed. Go reads its properties from its header, so that they are written once.
type source struct {
	Text string   `json:"text"`           // without comments, and with the values of its constants in their places
	Keys []string `json:"keys,omitempty"` // of a script: the names of its KEYS, in order
	// Needs are the parts that precede it, in order; layout, which is in front of every script, is not named.
	Needs []string `json:"needs,omitempty"`
	// Replace are the parts of a script that has a second form, which can replace tasks.
	Replace []string `json:"replace,omitempty"`
	// Then are the parts after a script that few of its calls reach.
	Then []string `json:"then,omitempty"`
}

// sources are all files of scripts/, unpacked once and only when a server lacks a script. Damage here is damage of the binary itself, so it panics.
var sources = sync.OnceValue(func() map[string]source {
	var files map[string]source
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

// script is a file of scripts/ with its parts in front of it, as Redis gets it.
// Its text is the same for every call, so that Redis finds it by its hash after the first.
type script struct {
	name string
	keys []string
	sha  string
	text func() string // put together when a server does not know it
	// answers is set if the script keeps its answers, and takes the caller as an additional last argument.
	answers bool
}

// The scripts, one for each verb; replace is submit with what it takes to replace tasks.
// It is a text of its own, as each call pays for all that is loaded, and submits that
// replace nothing are by far the most frequent. The plain ones are the common case of three verbs: see plain.go.
type scripts struct {
	submit, replace, touch, claim, next, settle, extend, charge, back, replay, order, hold, limit, permit, budgets, profile, quotas, replan, forget, read, list, find, agents, pauses, kinds, audit, sweep, presence, book, signal, receive, tally, recent, publish, follow, stamp, repartition script

	plainSubmit, plainClaim, plainSettle, plainStart script
}

// form is what is in front of a script.
type form byte

const (
	formWhole   form = 'w' // the parts that it needs, after tasks
	formReplace form = 'r' // the same, with the parts that replace tasks
	formPlain   form = 'p' // the parts that it needs alone
)

// each names all scripts.
func (s *scripts) each(do func(to *script, name string, f form)) {
	for _, of := range []struct {
		to   *script
		name string
	}{
		{&s.submit, "submit"},
		{&s.touch, "touch"},
		{&s.claim, "claim"},
		{&s.next, "next"},
		{&s.settle, "settle"},
		{&s.charge, "charge"},
		{&s.back, "back"},
		{&s.replay, "replay"},
		{&s.order, "order"},
		{&s.hold, "hold"},
		{&s.limit, "limit"},
		{&s.permit, "permit"},
		{&s.budgets, "budgets"},
		{&s.profile, "profile"},
		{&s.quotas, "quotas"},
		{&s.replan, "replan"},
		{&s.forget, "forget"},
		{&s.read, "read"},
		{&s.list, "list"},
		{&s.find, "find"},
		{&s.agents, "agents"},
		{&s.pauses, "pauses"},
		{&s.kinds, "kinds"},
		{&s.audit, "audit"},
		{&s.sweep, "sweep"},
		{&s.presence, "presence"},
		{&s.book, "book"},
		{&s.signal, "signal"},
		{&s.receive, "receive"},
		{&s.tally, "tally"},
		{&s.recent, "recent"},
		{&s.publish, "publish"},
		{&s.follow, "follow"},
		{&s.stamp, "stamp"},
		{&s.repartition, "repartition"},
	} {
		do(of.to, of.name, formWhole)
	}
	do(&s.replace, "submit", formReplace)
	do(&s.plainSubmit, "plainsubmit", formPlain)
	do(&s.plainClaim, "plainclaim", formPlain)
	do(&s.plainSettle, "plainsettle", formPlain)
	do(&s.plainStart, "plainstart", formPlain)
	do(&s.extend, "extend", formPlain)
	// For the script that is sent instead when the answer was lost.
	s.plainSubmit.answers, s.plainStart.answers = true, true
}

// index has a line for each script: its form and name, its hash, the names of its KEYS and whether it keeps answers. It is made with scripts.json.gz, so that no start
// puts all scripts together to hash them.
//
//go:embed scripts.index
var index string

// load reads the scripts; change, if not nil, is applied to each text, which tests use to hold time still.
func load(change func(text string) string) scripts {
	var all scripts
	if change != nil {
		all.each(func(to *script, name string, f form) { *to = hashed(sources(), name, f, change) })
		return all
	}
	known := make(map[string][]string, 64)
	for line := range strings.Lines(index) {
		if of := strings.Fields(line); len(of) == 4 {
			known[of[0]] = of
		}
	}
	all.each(func(to *script, name string, f form) {
		of, ok := known[string(f)+name]
		if !ok {
			panic("redisstore: " + name + ".lua is not in the index: run make generate")
		}
		text := sync.OnceValue(func() string { return assemble(sources(), name, f) })
		*to = script{name: name, sha: of[1], keys: strings.Split(of[2], ","), answers: of[3] == "yes", text: text}
	})
	return all
}

// partsOf are the parts in front of a script. The order matters: Lua sees a local function only below the line that declares it.
func partsOf(files map[string]source, name string, f form) []string {
	switch of := files[name]; f {
	case formPlain:
		return append([]string{partLayout}, of.Needs...)
	case formReplace:
		return append([]string{partLayout, partTasks}, of.Replace...)
	default:
		return append([]string{partLayout, partTasks}, of.Needs...)
	}
}

// assemble puts a script together of files.
func assemble(files map[string]source, name string, f form) string {
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

// hashed is a script whose text is changed, with its hash: SHA-1, as Redis finds the script by it.
func hashed(files map[string]source, name string, f form, change func(text string) string) script {
	text := change(assemble(files, name, f))
	sum := sha1.Sum([]byte(text)) //nolint:gosec // see the import
	return script{
		name: name, keys: files[name].Keys, sha: hex.EncodeToString(sum[:]), answers: slices.Contains(partsOf(files, name, f), partAnswers),
		text: func() string { return text },
	}
}
