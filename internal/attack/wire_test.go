package attack_test

// The wire: bytes that are no proper request, or that come too slowly, sent to the server of the binary itself.

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/internal/proof"
)

// secret is the token of the servers under attack.
const secret = "the-right-token"

// dial connects to a server, for so long.
func (s *server) dial(t *testing.T, most time.Duration) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(most)))
	return conn
}

// say sends bytes and returns all that is answered until the server closes the connection, and whether it has.
func (s *server) say(t *testing.T, text string) (answer string, closed bool) {
	t.Helper()
	conn := s.dial(t, 2*time.Second)
	_, _ = io.WriteString(conn, text)
	var b bytes.Buffer
	_, err := io.Copy(&b, conn)
	return b.String(), !errors.Is(err, os.ErrDeadlineExceeded)
}

// hidden is a whole request that submits a task with the right token: if one hidden in another is obeyed, the task exists.
func hidden(id string) string {
	body := `{"agent_id":"smuggled","id":"` + id + `","kind":"none"}`
	return fmt.Sprintf("POST /v1/tasks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", secret, len(body), body)
}

// Requests whose end is a matter of opinion are refused, and whatever is hidden behind one is never taken for the next.
func TestNothingIsSmuggled(t *testing.T) {
	t.Parallel()
	s := newProgram(t, "DULY_TOKEN="+secret).start(t, "serve")
	const head = "POST /v1/audit HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + secret + "\r\nContent-Type: application/json\r\n"
	for name, text := range map[string]string{
		"two lengths":              head + "Content-Length: 0\r\nContent-Length: 200\r\n\r\n" + hidden("1"),
		"lengths in a list":        head + "Content-Length: 0, 200\r\n\r\n" + hidden("2"),
		"a negative length":        head + "Content-Length: -1\r\n\r\n" + hidden("3"),
		"a length with a sign":     head + "Content-Length: +0\r\n\r\n" + hidden("4"),
		"a length in hex":          head + "Content-Length: 0x0\r\n\r\n" + hidden("5"),
		"a folded header":          head + "Content-Length: 0\r\n x\r\n\r\n" + hidden("6"),
		"a space before the colon": head + "Content-Length : 0\r\n\r\n" + hidden("7"),
		"another coding":           head + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + hidden("8"),
		"two codings":              head + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + hidden("9"),
		"a coding twice":           head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden("10"),
		"a coding with a tab":      head + "Transfer-Encoding:\vchunked\r\n\r\n0\r\n\r\n" + hidden("11"),
		"a NUL in a header":        head + "X: a\x00b\r\nContent-Length: 0\r\n\r\n" + hidden("12"),
		"a bare return":            head + "X: a\rContent-Length: 0\r\n\r\n" + hidden("13"),
		"a name with a space":      head + "Trans fer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n" + hidden("14"),
		"two hosts":                "POST /v1/audit HTTP/1.1\r\nHost: x\r\nHost: y\r\nAuthorization: Bearer " + secret + "\r\nContent-Length: 0\r\n\r\n" + hidden("15"),
		"no host":                  "POST /v1/audit HTTP/1.1\r\nAuthorization: Bearer " + secret + "\r\nContent-Length: 0\r\n\r\n" + hidden("16"),
		"a chunk that is too long": head + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n" + hidden("17"),
		"a chunk with a sign":      head + "Transfer-Encoding: chunked\r\n\r\n-1\r\n" + hidden("18"),
		"a version of its own":     strings.Replace(head, "HTTP/1.1", "HTTP/1.1 HTTP/1.0", 1) + "\r\n" + hidden("19"),
		"a request to nowhere":     "\x16\x03\x01\x00\xa5\x01\x00\x00\r\n\r\n" + hidden("20"),
		"the preface of HTTP/2":    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + hidden("21"),
		"a path with a line break": "GET /v1/\r\nstats HTTP/1.1\r\nHost: x\r\n\r\n" + hidden("22"),
	} {
		answer, closed := s.say(t, text)
		assert.True(t, closed, "%s: the connection is closed", name)
		assert.LessOrEqual(t, strings.Count(answer, "HTTP/1.1 "), 1, "%s: one answer: %s", name, answer)
		assert.NotContains(t, answer, " 500 ", name)
		assert.NotContains(t, answer, "HTTP/1.1 2", "%s: %s", name, answer)
	}
	// With a length and a coding the coding counts, as RFC 9112 has it; behind a refusal nothing more is read.
	answer, closed := s.say(t, strings.Replace(head, secret, "guessed", 1)+"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"+hidden("23"))
	assert.True(t, closed)
	assert.Equal(t, 1, strings.Count(answer, "HTTP/1.1 "), answer)
	assert.Contains(t, answer, " 401 ")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/v1/tasks?agent_id=smuggled", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+secret)
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	assert.JSONEq(t, `{"tasks":[],"next_cursor":""}`, string(body))
	assert.NotContains(t, s.log(), "panic")
}

// slow is a client that sends a little and then a drip. It returns what was answered, and how long until it was cut off, or until
// the first answer if that is asked for.
func (s *server) slow(t *testing.T, first, drip string, most time.Duration, answered bool) (string, time.Duration) {
	t.Helper()
	begun, conn := time.Now(), s.dial(t, most)
	_, err := io.WriteString(conn, first)
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		beat := time.NewTicker(100 * time.Millisecond)
		defer beat.Stop()
		for range beat.C {
			if _, err := io.WriteString(conn, drip); err != nil {
				return
			}
		}
	}()
	var answer []byte
	if answered {
		answer = make([]byte, 1024)
		n, _ := conn.Read(answer)
		answer = answer[:n]
	} else {
		answer, err = io.ReadAll(conn)
		assert.NotErrorIs(t, err, os.ErrDeadlineExceeded, "%.40q is not cut off within %s", first, most)
	}
	took := time.Since(begun)
	_ = conn.Close()
	<-ended
	return string(answer), took
}

// Who sends slowly, or nothing, is cut off; others are answered meanwhile. A body takes half a minute, so only a whole proof waits.
func TestSlowClientsAreCutOff(t *testing.T) {
	t.Parallel()
	s := newProgram(t, "DULY_TOKEN="+secret).start(t, "serve")
	const body = "POST /v1/tasks HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100000\r\nAuthorization: Bearer "
	var clients sync.WaitGroup
	for _, c := range []struct {
		name, first, drip string
		within            time.Duration
		whole             bool // only in a whole proof
	}{
		{"a request line that does not end", "GET /v1/st", "x", 8 * time.Second, false},
		{"headers that do not end", "GET /v1/stats HTTP/1.1\r\nHost: x\r\n", "X: y\r\n", 8 * time.Second, false},
		{"a body", body + secret + "\r\n\r\n", " ", 40 * time.Second, true},
		{"a body of somebody unknown", body + "guessed\r\n\r\n", " ", 40 * time.Second, true},
	} {
		if c.whole && !proof.Whole() {
			continue
		}
		clients.Go(func() {
			_, took := s.slow(t, c.first, c.drip, c.within, false)
			proof.Figure(t, "%s: cut off after %.1f s", c.name, took.Seconds())
		})
	}
	answer, took := s.slow(t, body+"guessed\r\n\r\n", " ", 10*time.Second, true)
	assert.Contains(t, answer, "HTTP/1.1 401 ", "nobody waits for the body of somebody unknown")
	assert.Less(t, took, 3*time.Second)
	res, err := http.Get(s.url + "/healthz")
	require.NoError(t, err)
	defer res.Body.Close()
	assert.Equal(t, 200, res.StatusCode)
	http.DefaultClient.CloseIdleConnections()
	clients.Wait()
}

// Headers and bodies have bounds on the wire too: what is beyond is refused, and not kept.
func TestTheWireHasBounds(t *testing.T) {
	t.Parallel()
	s := newProgram(t, "DULY_TOKEN="+secret).start(t, "serve")
	many := strings.Builder{}
	for i := range 5000 {
		fmt.Fprintf(&many, "X-%d: %s\r\n", i, strings.Repeat("y", 100))
	}
	for name, text := range map[string]string{
		"a long header": "GET /v1/stats HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n",
		"many headers":  "GET /v1/stats HTTP/1.1\r\nHost: x\r\n" + many.String() + "\r\n",
		"a long path":   "GET /" + strings.Repeat("x", 1<<20) + " HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		answer, closed := s.say(t, text)
		assert.True(t, closed, name)
		assert.True(t, answer == "" || strings.Contains(answer, " 431 "), "%s: %s", name, answer)
	}
	// Chunks without an end, each with an extension: the request ends with the bound of a body.
	conn := s.dial(t, 20*time.Second)
	go func() {
		w := bufio.NewWriter(conn)
		_, _ = io.WriteString(w, "POST /v1/tasks HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nAuthorization: Bearer "+secret+"\r\n\r\n")
		chunk := "1000\r\n" + strings.Repeat(" ", 0x1000) + "\r\n"
		for {
			if _, err := io.WriteString(w, chunk); err != nil {
				return // it was cut off
			}
		}
	}()
	answer, _ := io.ReadAll(conn)
	assert.Contains(t, string(answer), " 413 ")
}
