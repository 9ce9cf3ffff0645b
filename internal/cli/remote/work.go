package remote

// Runs of workers.

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
)

// Lending is what a server offers to workers.
type Lending struct{ *Client }

// onTheWay is how long an answer may still take whose caller has gone.
const onTheWay = 5 * time.Second

// ClaimRuns claims runs for a worker. At the end of ctx the server hears that the worker has gone, and an answer that it has sent by then is read: runs
// that are on the way would belong to a worker that never hears of them.
func (l Lending) ClaimRuns(ctx context.Context, claim operation.Claim) (operation.Lent, error) {
	call, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	var connection atomic.Value
	trace := httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { connection.Store(&c.Conn) }}
	left := context.AfterFunc(ctx, func() {
		c, _ := connection.Load().(*net.Conn)
		if c == nil || !hangUp(*c) {
			cancel(context.Cause(ctx))
			return
		}
		time.AfterFunc(onTheWay, func() { cancel(context.Cause(ctx)) })
	})
	defer left()
	return send(httptrace.WithClientTrace(call, &trace), l.connection, operation.ClaimRuns, claim)
}

// hangUp ends what is sent on a connection, and reports whether an answer may still come. One of HTTP/2 has other calls, too.
func hangUp(c net.Conn) bool {
	if t, is := c.(*tls.Conn); is && t.ConnectionState().NegotiatedProtocol == "h2" {
		return false
	}
	half, is := c.(interface{ CloseWrite() error })
	return is && half.CloseWrite() == nil
}

// KeepRuns extends the leases of runs, and stores what they report.
func (l Lending) KeepRuns(ctx context.Context, keep operation.Keep) (operation.Kept, error) {
	return send(ctx, l.connection, operation.KeepRuns, keep)
}

// ReturnRuns ends runs, and claims the next.
func (l Lending) ReturnRuns(ctx context.Context, ends operation.Return) (operation.Returned, error) {
	return send(ctx, l.connection, operation.ReturnRuns, ends)
}
