package rpc

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"

	"connectrpc.com/connect"
	"connectrpc.com/grpcreflect"

	"github.com/seed-6f6f2c11/duly/adapters/http/rpc/schedulerpb"
	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/core"
)

// The handler: its protocols, its bounds, and the calls that its host does not let in.

// mostRead is how many bytes a message of a client may have, decompressed: no request here is longer than a few ids.
const mostRead = 64 << 10

// Config says how a scheduler is served. Every zero is a good default.
type Config struct {
	// Ready says whether the process can run tasks, besides what its scheduler says; always if nil.
	Ready func(ctx context.Context) error
	// DefaultAgent is the agent of a job that is named without one; if empty a call has to name the agent. The caller needs rights to it.
	DefaultAgent string
	// Logger gets what went wrong on this side. Nothing is logged if nil.
	Logger *slog.Logger
}

// Handler serves the calls. It asks for no credential: its host does, and puts the principal into the context of a request.
type Handler struct {
	mux     *http.ServeMux
	errors  *connect.ErrorWriter
	own     *service
	options []connect.HandlerOption
}

// New makes the handler for a scheduler. It is used by many goroutines.
func New(s *core.Scheduler, config Config) *Handler {
	config.Logger = cmp.Or(config.Logger, slog.New(slog.DiscardHandler))
	if config.Ready == nil {
		config.Ready = func(context.Context) error { return nil }
	}
	options := []connect.HandlerOption{
		connect.WithReadMaxBytes(mostRead),
		connect.WithRecover(func(ctx context.Context, spec connect.Spec, _ http.Header, v any) error {
			config.Logger.LogAttrs(ctx, slog.LevelError, "a call panicked", slog.String("procedure", spec.Procedure),
				slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
			return coded(problem.ErrInternal)
		}),
	}
	for _, codec := range codecs {
		options = append(options, connect.WithCodec(codec))
	}
	own := &service{scheduler: s, config: config}
	h := &Handler{mux: http.NewServeMux(), errors: connect.NewErrorWriter(options...), own: own, options: slices.Clip(options)}
	h.mux.Handle(schedulerpb.NewSchedulerServiceHandler(own, options...))
	agentMemory{own}.mount(h.mux, options)
	// Not the service of agent-memory: its description belongs to that.
	reflector := grpcreflect.NewStaticReflector(schedulerpb.SchedulerServiceName, schedulerpb.WorkerServiceName)
	h.mux.Handle(grpcreflect.NewHandlerV1(reflector, options...))
	// grpcurl and others still ask for this one first.
	h.mux.Handle(grpcreflect.NewHandlerV1Alpha(reflector, options...))
	return h
}

// Services are the names of what it serves besides the calls of workers: the first segments of its paths.
func (*Handler) Services() []string {
	return []string{schedulerpb.SchedulerServiceName, memoryService, grpcreflect.ReflectV1ServiceName, grpcreflect.ReflectV1AlphaServiceName}
}

// ServeHTTP answers one call.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// Refuse answers a call that its host does not let in, in the protocol of the call. It reports whether it has: what is no call
// of any protocol is the host's to answer.
func (h *Handler) Refuse(w http.ResponseWriter, r *http.Request, err error) bool {
	if !h.errors.IsSupported(r) {
		return false
	}
	_ = h.errors.Write(w, r, coded(err)) // the client has gone away
	return true
}

// coded is an error as a client sees it: with a code, and without what happened inside.
func coded(err error) error {
	p := problem.Of(err)
	return connect.NewError(codeOf(p), errors.New(p.Detail)) // not err itself: no interceptor may come to show what it wraps
}

// codeOf is the gRPC code of a problem. Statuses decide, as the one table of codes has them; what they do not tell apart comes first.
func codeOf(p *problem.Error) connect.Code {
	if p.Code == problem.CodeNoRoute {
		return connect.CodeUnimplemented
	}
	switch p.Status {
	case http.StatusBadRequest, http.StatusUnsupportedMediaType:
		return connect.CodeInvalidArgument
	case http.StatusUnauthorized:
		return connect.CodeUnauthenticated
	case http.StatusForbidden:
		return connect.CodePermissionDenied
	case http.StatusNotFound:
		return connect.CodeNotFound
	case http.StatusMethodNotAllowed:
		return connect.CodeUnimplemented
	case http.StatusConflict: // the task is in a state that the call is not for
		return connect.CodeFailedPrecondition
	case http.StatusRequestEntityTooLarge, http.StatusTooManyRequests:
		return connect.CodeResourceExhausted
	case http.StatusServiceUnavailable:
		return connect.CodeUnavailable
	default:
		return connect.CodeInternal
	}
}
