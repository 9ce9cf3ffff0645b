package console

// Sessions: who visits, and whether a form comes from a page of theirs.

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/seed-6f6f2c11/duly/adapters/internal/localhost"
	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/core"
)

// The cookies of a session: one that identifies it, and the bearer token that the user signed in with. Only the browser keeps them, so
// that every process behind one address knows a session, and none has to be stored.
const (
	sessionCookie = "duly_session"
	tokenCookie   = "duly_token"
	// mostToken is how long a bearer token may be, in bytes: browsers drop larger cookies.
	mostToken = 2900
	// tokenField is the field of a form that proves where it comes from.
	tokenField = "form_token"
)

// session is what a browser has sent of its session.
type session struct {
	nonce string // tells sessions apart; made with the first page
	token string // the bearer token; empty if no user has signed in
	fresh bool   // the browser does not have the nonce yet
}

// formToken proves that a form was made for the session: it cannot be made without the session's cookies. All processes make the same token.
func (s *session) formToken() string {
	mac := hmac.New(sha256.New, []byte(s.nonce+"\x00"+s.token))
	mac.Write([]byte("duly console form")) // hash.Hash never fails
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// cookie is the text of a cookie; empty if there is none that can be read.
func cookie(r *http.Request, name string) string {
	c, err := r.Cookie(name)
	if err != nil {
		return ""
	}
	text, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return ""
	}
	return string(text)
}

// keep sets a cookie, or takes it back if its text is empty. It goes with requests from the console's own pages only, and scripts do not see it.
func (v *visit) keep(name, text string) {
	c := &http.Cookie{ //nolint:gosec // it is Secure unless nothing of it crosses a network
		Name: name, Value: base64.RawURLEncoding.EncodeToString([]byte(text)), Path: Path, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: !localhost.Loopback(v.r.Host),
	}
	if text == "" {
		c.MaxAge = -1
	}
	http.SetCookie(v.w, c)
}

// identify reads the session, and finds out who visits. Where a credential is needed and there is none that is good it answers with the form to
// sign in.
func (v *visit) identify(open bool) error {
	v.session = session{nonce: cookie(v.r, sessionCookie), token: cookie(v.r, tokenCookie)}
	if v.session.nonce == "" {
		v.session.nonce, v.session.fresh = rand.Text(), true
		v.keep(sessionCookie, v.session.nonce)
	}
	if v.options.Callers == nil || open {
		return nil
	}
	who, err := v.caller(v.session.token)
	if err != nil {
		return err
	}
	v.who = who
	v.r = v.r.WithContext(core.WithPrincipal(v.r.Context(), who))
	return nil
}

// caller finds out whose a bearer token is. A request that has one of its own, as a proxy adds it, needs no session.
func (v *visit) caller(token string) (core.Principal, error) {
	header := v.r.Header.Get("Authorization")
	if token != "" {
		header = "Bearer " + token
	}
	if header == "" {
		return core.Principal{}, errSignIn
	}
	// Nothing else of the request counts: what signs bodies is for programs.
	bare, err := http.NewRequestWithContext(v.r.Context(), http.MethodGet, Path, http.NoBody)
	if err != nil {
		return core.Principal{}, err
	}
	bare.Header.Set("Authorization", header)
	who, err := v.options.Callers(bare)
	if err != nil {
		v.options.Logger.LogAttrs(v.r.Context(), slog.LevelInfo, "a visitor of the console was refused", slog.Any("err", err))
		return core.Principal{}, errRefused
	}
	return who, nil
}

// What keeps visitors out.
var (
	errSignIn  = problem.New(problem.CodeUnauthorized, "Sign in with a token of the API.")
	errRefused = problem.New(problem.CodeUnauthorized, "The token is not known, or has expired.")
	errOrigin  = problem.New(core.CodeForbidden, "the form does not come from a page of this console: open the console in this window and try again")
	errForm    = problem.New(core.CodeForbidden, "the form is of another session, or an old one: go back, load the page again, and try again")
)

// checkForm refuses a form that was not sent from a page of this session: both where the browser says that it comes from, and a token that only such a
// page has, must be right.
func (v *visit) checkForm() error {
	if !sameOrigin(v.r) {
		return errOrigin
	}
	if t, _, _ := strings.Cut(v.r.Header.Get("Content-Type"), ";"); t != "application/x-www-form-urlencoded" {
		return problem.New(problem.CodeMediaType, "a form must be application/x-www-form-urlencoded")
	}
	if err := v.r.ParseForm(); err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return problem.New(problem.CodeTooLarge, "the form is too long")
		}
		return &core.InvalidError{Field: "form", Reason: "cannot be read"}
	}
	given := v.r.PostForm.Get(tokenField)
	if v.session.fresh || !hmac.Equal([]byte(given), []byte(v.session.formToken())) {
		return errForm
	}
	return nil
}

// sameOrigin reports whether a browser says that a request comes from a page of the same origin. One that says nothing, in any of the ways, is
// refused.
func sameOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	from := r.Header.Get("Origin")
	if from == "" {
		from = r.Referer()
	}
	u, err := url.Parse(from)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

// signIn keeps a token that is good, and begins a new session with it.
func (c *console) signIn(v *visit) (*page, error) {
	token := strings.TrimSpace(v.r.PostForm.Get("token"))
	switch {
	case c.options.Callers == nil:
		return nil, problem.New(core.CodeConflict, "nobody needs to sign in here")
	case token == "":
		return nil, &core.InvalidError{Field: "token", Reason: "must not be empty"}
	case len(token) > mostToken:
		return nil, &core.InvalidError{Field: "token", Reason: "is too long for a browser to keep"}
	}
	if _, err := v.caller(token); err != nil {
		return nil, err
	}
	v.keep(sessionCookie, rand.Text())
	v.keep(tokenCookie, token)
	return &page{to: Path}, nil
}

// signOut makes the browser forget the token.
func (*console) signOut(v *visit) (*page, error) {
	v.keep(sessionCookie, "")
	v.keep(tokenCookie, "")
	return &page{to: Path}, nil
}
