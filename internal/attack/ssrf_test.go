package attack_test

// Requests into the network: a webhook whose name, address or answer leads inside.

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/handlers/webhook"
)

// inside are addresses that a webhook must not reach. A name of the tests' name server is another one each time it is asked for, as
// one that is rebound.
var inside = []string{"127.0.0.1", "10.0.0.1", "169.254.169.254", "192.168.1.1", "172.16.0.1", "100.100.100.200", "0.0.0.0", "224.0.0.1", "255.255.255.255"}

// asked counts the questions to the name server, and which name it was asked for last.
var asked struct {
	sync.Mutex
	names map[string]int
}

// resolver is a name server in this process that knows every name, and answers each question with the next address of inside. TestMain
// puts it in place of the system's: no name leaves the process.
func resolver() *net.Resolver {
	asked.names = map[string]int{}
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go answer(server)
		return client, nil
	}}
}

// answer answers one question, in the framing of DNS over a stream.
func answer(conn net.Conn) {
	defer conn.Close()
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return
	}
	question := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(conn, question); err != nil {
		return
	}
	end, name := 12, ""
	for question[end] != 0 {
		n := int(question[end])
		name += string(question[end+1:end+1+n]) + "."
		end += n + 1
	}
	end++
	message := append([]byte{}, question[:end+4]...)
	copy(message[2:12], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0})
	asked.Lock()
	asked.names[name]++
	addr := netip.MustParseAddr(inside[asked.names[name]%len(inside)])
	asked.Unlock()
	data := addr.AsSlice()
	if question[end+1] == 28 { // AAAA: the same address in the guise of IPv6
		mapped := netip.AddrFrom16(addr.As16()).As16()
		data = mapped[:]
	}
	message[7] = 1
	message = append(message, 0xc0, 12, 0, question[end+1], 0, 1, 0, 0, 0, 0, 0, byte(len(data)))
	message = append(message, data...)
	binary.BigEndian.PutUint16(size[:], uint16(len(message)))
	_, _ = conn.Write(append(size[:], message...))
}

// call runs one task by a webhook, and returns it as it is then.
func call(t *testing.T, c webhook.Config) core.TaskInfo {
	t.Helper()
	hook, err := webhook.New(c)
	require.NoError(t, err, c.URL)
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
	require.NoError(t, err)
	core.Handle(s, "hook", hook.Run)
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "i", Kind: "hook", MaxAttempts: 1})
	require.NoError(t, err)
	_, _ = s.RunDue(t.Context(), core.Scope{}) // that the run failed is in the task
	task, err := s.Task(t.Context(), "a", "i")
	require.NoError(t, err)
	return task
}

// receiver is a server of this machine that nobody may reach. It counts requests and connections.
func receiver(t *testing.T, answer http.HandlerFunc) (port string, reached *atomic.Int64) {
	t.Helper()
	reached = new(atomic.Int64)
	s := httptest.NewUnstartedServer(answer)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			reached.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	require.NoError(t, err)
	return port, reached
}

// However a URL writes an address, and whatever its name means when it is dialled, nothing inside is connected to.
func TestWebhooksReachNothingInside(t *testing.T) {
	t.Parallel()
	port, reached := receiver(t, func(http.ResponseWriter, *http.Request) {})
	hosts := []string{
		"rebound.example", "public.example.", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "127.1", "127.0.1", "127.0.0.1.", "localhost", "LOCALHOST", "localhost.", "127.0.0.1",
		"127.127.127.127", "0", "0.0.0.0", "[::]", "[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[0000:0000:0000:0000:0000:ffff:7f00:0001]", "[::1%25lo]", "[fe80::1%25lo]",
		"[64:ff9b::7f00:1]", "[2002:7f00:1::]", "169.254.169.254", "[fd00:ec2::254]", "metadata.google.internal", "169.254.169.254.nip.example", "①②⑦.⓪.⓪.①", "127。0。0。1", "%31%32%37.0.0.1",
		"public.example@127.0.0.1", "public.example:443@127.0.0.1", "public.example%2f@127.0.0.1", "127.0.0.1%00.example", "user:pass@[::1]",
	}
	for _, host := range hosts {
		for _, c := range []webhook.Config{
			{URL: "http://" + host + ":" + port + "/#@public.example", Insecure: true}, {URL: "https://" + host + ":" + port + "/?@public.example/"},
		} {
			if _, err := webhook.New(c); err != nil {
				continue // it is no URL
			}
			for range 3 { // what a name means changes in between
				task := call(t, c)
				assert.Equal(t, core.StatusFailed, task.Status, c.URL)
				assert.NotContains(t, task.LastError, "pass")
			}
		}
	}
	assert.Zero(t, reached.Load(), "nobody was even connected to")
	asked.Lock()
	defer asked.Unlock()
	assert.GreaterOrEqual(t, asked.names["rebound.example."], 3, "the name was asked for at each dial")
}

// A webhook that may call this machine calls none of the network, whatever localhost means; and one that may call neither is not helped
// by an answer that leads there.
func TestAnAnswerLeadsNowhere(t *testing.T) {
	t.Parallel()
	port, reached := receiver(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "inside") })
	for _, status := range []int{300, 301, 302, 303, 305, 306, 307, 308} {
		for _, to := range []string{"http://127.0.0.1:" + port + "/", "//127.0.0.1:" + port, "http://[::ffff:127.0.0.1]:" + port, "file:///etc/passwd", "gopher://127.0.0.1:" + port} {
			from, first := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", to)
				w.Header().Set("Refresh", "0; url="+to)
				w.Header().Set("Alt-Svc", `h2="127.0.0.1:`+port+`"`)
				w.Header().Set("Link", "<"+to+">; rel=preload")
				w.WriteHeader(status)
			})
			task := call(t, webhook.Config{URL: "http://127.0.0.1:" + from, AllowLoopback: true})
			assert.Equal(t, core.StatusFailed, task.Status)
			assert.Contains(t, task.LastError, "redirects are not followed")
			assert.EqualValues(t, 1, first.Load(), "final at once")
		}
	}
	assert.Zero(t, reached.Load())
	for _, host := range []string{"10.0.0.1", "169.254.169.254", "rebound.example"} {
		task := call(t, webhook.Config{URL: "https://" + host + ":" + port, AllowLoopback: true})
		assert.Contains(t, task.LastError, "is not a public address", "to be allowed to call this machine allows no other")
	}
}

// A proxy of the environment would dial in place of the guard: none is used.
func TestNoProxyDialsForAWebhook(t *testing.T) {
	t.Parallel()
	port, reached := receiver(t, func(http.ResponseWriter, *http.Request) {})
	proxy := "http://127.0.0.1:" + port
	p := newProgram(t, "HTTP_PROXY="+proxy, "HTTPS_PROXY="+proxy, "ALL_PROXY="+proxy, "http_proxy="+proxy, "https_proxy="+proxy)
	config := file(t, `handlers: { hook: { webhook: "http://10.255.255.1/", insecure: true } }`+"\n"+`tasks: [ { agent: a, id: i, kind: hook, at: "2026-01-01T00:00:00Z", max_attempts: 1 } ]`+"\n")
	out := p.run(t, "run-due", "--all", "-c", config)
	assert.Contains(t, out, "10.255.255.1 is not a public address", out)
	assert.Zero(t, reached.Load(), fmt.Sprint(strings.Count(out, "proxy")))
}
