package image_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store/image"
)

type node struct {
	name  string
	other *node // shared
	deeds map[[2]string]map[int64]*node
	own   *leaf
	line  []*node
	less  func() `image:"-"` // it is not written
}

type leaf struct {
	yes   bool
	small int8
	big   int64
	word  uint32
	real  float64
	text  string
	bytes []byte
	list  []string
	pair  [2]float64
}

type tree struct {
	First *node
	All   map[string]*node
	leaf
}

// made is a value with all that can be written.
func made() *tree {
	a, b := &node{name: "a"}, &node{name: "b", less: func() {}}
	a.other, b.other = b, a
	a.line = []*node{b, nil, a}
	a.deeds = map[[2]string]map[int64]*node{{"x", "y"}: {-3: b, 1 << 60: a}, {"", ""}: nil}
	b.own = &leaf{yes: true, small: -128, big: math.MinInt64, word: math.MaxUint32, real: -0.5, text: "text", bytes: []byte{}, list: []string{"", "x"}, pair: [2]float64{0, math.Copysign(0, -1)}}
	return &tree{First: a, All: map[string]*node{"b": b, "a": a, "": nil}, leaf: leaf{bytes: []byte("bytes")}}
}

// pieces are what Write gives, each a copy.
func pieces(t *testing.T, f *image.Format, v any) (all [][]byte) {
	t.Helper()
	require.NoError(t, f.Write(v, func(piece []byte) error {
		all = append(all, append([]byte(nil), piece...))
		return nil
	}))
	return all
}

// from hands pieces over one by one.
func from(all [][]byte) func() ([]byte, error) {
	return func() ([]byte, error) {
		if len(all) == 0 {
			return nil, image.ErrDamaged
		}
		piece := all[0]
		all = all[1:]
		return piece, nil
	}
}

var format = image.Of((*tree)(nil), (*node)(nil))

// What is read is what was written: shared values stay shared, cycles close, nil and empty differ, and the bytes are the same each time.
func TestValuesComeBack(t *testing.T) {
	t.Parallel()
	was := made()
	written := pieces(t, format, was)
	for range 20 { // the order of maps changes
		require.Equal(t, written, pieces(t, format, made()))
	}
	r, err := format.Reader(format.Schema())
	require.NoError(t, err)
	var is tree
	require.NoError(t, r.Read(&is, from(written)))
	assert.Nil(t, is.All["b"].less)
	was.All["b"].less = nil
	assert.Equal(t, was, &is)
	assert.Same(t, is.First, is.All["a"])
	assert.Same(t, is.First, is.First.other.other)
	assert.NotNil(t, is.First.other.own.bytes)
	assert.True(t, math.Signbit(is.First.other.own.pair[1]))
	assert.Equal(t, written, pieces(t, format, &is))
}

// A long chain is written without recursion, in several pieces.
func TestALongChain(t *testing.T) {
	t.Parallel()
	first := &node{name: "first"}
	for at, i := first, 0; i < 300_000; i++ {
		at.other = &node{name: strings.Repeat("n", i%20)}
		at = at.other
	}
	written := pieces(t, format, &tree{First: first})
	assert.Greater(t, len(written), 2)
	r, err := format.Reader(format.Schema())
	require.NoError(t, err)
	var is tree
	require.NoError(t, r.Read(&is, from(written)))
	length := 0
	for at := is.First; at.other != nil; at = at.other {
		length++
	}
	assert.Equal(t, 300_000, length)
}

// What another version has written is read by names: what is new is zero, and what is unknown is an error.
func TestVersions(t *testing.T) {
	t.Parallel()
	type Old struct {
		Name string
		N    int
	}
	older := image.Of((*Old)(nil))
	written := older.Append(nil, &Old{"ada", 7})
	type New struct {
		Added []string
		N     int
		Name  string
	}
	newer := image.Of((*New)(nil))
	schema := strings.ReplaceAll(older.Schema(), "image_test.Old", "image_test.New")
	r, err := newer.Reader(schema)
	require.NoError(t, err)
	var is New
	rest, err := r.Next(append(written, "behind"...), &is)
	require.NoError(t, err)
	assert.Equal(t, New{Name: "ada", N: 7}, is)
	assert.Equal(t, "behind", string(rest))

	unknown := &image.UnknownError{}
	_, err = older.Reader(strings.ReplaceAll(newer.Schema(), "image_test.New", "image_test.Old"))
	require.ErrorAs(t, err, &unknown)
	assert.ErrorContains(t, err, "Old.Added")
	_, err = newer.Reader(strings.ReplaceAll(schema, "N int", "N string"))
	require.ErrorAs(t, err, &unknown, "it is something else now")
	_, err = newer.Reader("another\n")
	require.ErrorAs(t, err, &unknown)
}

// A type that cannot be written is a mistake in the program.
func TestWhatCannotBeWritten(t *testing.T) {
	t.Parallel()
	assert.Panics(t, func() { image.Of((*struct{ F func() })(nil)) })
	assert.Panics(t, func() { image.Of((*struct{ I any })(nil)) })
	assert.Panics(t, func() { image.Of((*struct{ M map[*node]int })(nil), (*node)(nil)) }, "such a map has no order")
}

// Bytes that were never written are an error: no panic, and nothing is made that they cannot fill.
func FuzzRead(f *testing.F) {
	var whole []byte
	_ = format.Write(made(), func(piece []byte) error {
		whole = append(whole, piece...)
		return nil
	})
	f.Add(whole)
	for i := range whole {
		f.Add(whole[:i])
		flipped := append([]byte(nil), whole...)
		flipped[i] ^= 0x80
		f.Add(flipped)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := format.Reader(format.Schema())
		require.NoError(t, err)
		var is tree
		if r.Read(&is, from([][]byte{data})) == nil {
			again := pieces(t, format, &is)
			r, _ = format.Reader(format.Schema())
			require.NoError(t, r.Read(&tree{}, from(again)))
		}
	})
}
