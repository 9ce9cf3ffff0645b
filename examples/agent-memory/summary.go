package main

import (
	"context"
	"sort"
	"strings"
	"unicode"
)

// Summariser makes a short text of long ones. A platform puts its language model here.
type Summariser interface {
	// Summarise returns at most so many sentences. An error is tried again, as one of a task.
	Summarise(ctx context.Context, texts []string, most int) (string, error)
}

// Extractive keeps the sentences whose words are used most: it needs no model and gives the same answer each time.
type Extractive struct{}

// Summarise returns at most so many sentences, in their order.
func (Extractive) Summarise(_ context.Context, texts []string, most int) (string, error) {
	all := sentences(strings.Join(texts, "\n"))
	uses := map[string]int{}
	for _, s := range all {
		for _, w := range words(s) {
			uses[w]++
		}
	}
	order := make([]int, len(all))
	weight := make([]float64, len(all))
	for i, s := range all {
		order[i] = i
		ws := words(s)
		for _, w := range ws {
			weight[i] += float64(uses[w])
		}
		weight[i] /= float64(len(ws) + 1)
	}
	sort.SliceStable(order, func(a, b int) bool { return weight[order[a]] > weight[order[b]] })
	order = order[:min(most, len(order))]
	sort.Ints(order)
	var out []string
	for _, i := range order {
		out = append(out, all[i]+".")
	}
	return strings.Join(out, " "), nil
}

// sentences are those of a text, without what ends them.
// Abbreviations end a sentence too: a summary may stop early, and nothing is lost.
func sentences(text string) []string {
	var out []string
	for s := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '.' || r == '!' || r == '?' || r == '\n' }) {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// words are the longer words of a text: the short ones say little.
func words(s string) []string {
	var out []string
	for w := range strings.FieldsFuncSeq(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(w) > 3 {
			out = append(out, w)
		}
	}
	return out
}
