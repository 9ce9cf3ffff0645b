package console

// Pages: how they are rendered, refused and escaped, and the files that they need.

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"html/template"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

//go:embed templates/*.html assets/*
var files embed.FS

// assetPath is where the files are that pages load.
const assetPath = Path + "/assets/"

// page is what a request is answered with.
type page struct {
	name   string // of its template
	title  string
	status int // 200 if zero
	body   any
	to     string // where the browser is sent instead, if it is set
}

// layout is what a template gets: what all pages have, and the body of this one as P.
type layout struct {
	Title, Page, Path string
	Said              string // how the form before ended
	Who, Version      string
	SignedIn          bool // there is a token to forget
	ReadOnly          bool
	All               bool // the visitor may see all agents
	Guest             bool // no user has signed in yet: there are no links to show
	Token             string
	Now               time.Time
	P                 any
}

// parsePages parses the templates, each with the layout. A mistake in one of them panics: a test renders all.
func parsePages() map[string]*template.Template {
	shared := template.Must(template.New("layout.html").Funcs(functions()).ParseFS(files, "templates/layout.html", "templates/parts.html"))
	all := map[string]*template.Template{}
	names, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		one := strings.TrimSuffix(strings.TrimPrefix(name, "templates/"), ".html")
		if one != "layout" && one != "parts" {
			all[one] = template.Must(template.Must(shared.Clone()).ParseFS(files, name))
		}
	}
	return all
}

// write answers with a page, in one piece, so that a failure to render it can still be answered.
func (v *visit) write(p *page) error {
	if p.to != "" {
		http.Redirect(v.w, v.r, p.to, http.StatusSeeOther)
		return nil
	}
	l := layout{
		Title: p.title, Page: p.name, Path: v.r.URL.RequestURI(), Said: said[v.r.URL.Query().Get("said")], Who: v.who.Name, Version: v.options.Version,
		SignedIn: v.session.token != "", ReadOnly: v.options.ReadOnly, Now: v.now, P: p.body, Token: v.session.formToken(),
		Guest: v.options.Callers != nil && v.who.Rights == nil, All: v.may(model.ActionRead, "") == nil,
	}
	var b bytes.Buffer
	if err := v.pages[p.name].Execute(&b, &l); err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if p.status != 0 {
		v.w.WriteHeader(p.status)
	}
	if _, err := v.w.Write(visible(b.Bytes())); err != nil {
		v.options.Logger.LogAttrs(v.r.Context(), slog.LevelDebug, "a page could not be sent", slog.Any("err", err))
	}
	return nil
}

// visible replaces invisible characters, and those that change the direction of text: control bytes by the symbols that Unicode has for them, and
// others by the replacement character. Templates contain none of these, so all come from data.
func visible(text []byte) []byte {
	return bytes.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < ' ':
			return '\u2400' + r
		case r == 0x7f:
			return '\u2421'
		case unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Bidi_Control, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r):
			return unicode.ReplacementChar
		default:
			return r
		}
	}, text)
}

// failure is what the page of an error shows.
type failure struct {
	Status     int
	Text, Todo string
	Back       string
	SignIn     bool
	Insecure   bool // a browser would not keep the session
}

// refuse answers with the page of an error: what is wrong, and what to do. What went wrong on this side is logged, and not shown.
func (v *visit) refuse(err error) {
	p := problem.Of(err)
	if p.Status >= http.StatusInternalServerError && v.r.Context().Err() == nil {
		v.options.Logger.LogAttrs(v.r.Context(), slog.LevelWarn, "a page failed", slog.String("path", v.r.URL.Path), slog.Any("err", err))
	}
	f := failure{Status: p.Status, Text: sentence(p.Detail), Todo: todoOf(p.Code), Back: v.sameReferer()}
	if f.Back == "" {
		f.Back = Path
	}
	maps.Copy(v.w.Header(), p.Header)
	title := http.StatusText(p.Status)
	if p.Code == problem.CodeUnauthorized {
		f.SignIn, f.Insecure, title = true, v.insecure(), "Sign in"
		if errors.Is(err, errRefused) {
			v.who = core.Principal{}
		}
	}
	if err := v.write(&page{name: "error", title: title, status: p.Status, body: f}); err != nil {
		v.options.Logger.LogAttrs(v.r.Context(), slog.LevelError, "a page could not be rendered", slog.Any("err", err))
		http.Error(v.w, "internal error", http.StatusInternalServerError)
	}
}

// insecure reports whether a browser would drop the cookie of a session, as the address is neither encrypted nor this machine's.
func (v *visit) insecure() bool {
	return v.r.TLS == nil && v.r.Header.Get("X-Forwarded-Proto") != "https" && !loopback(v.r)
}

// sameReferer is the page that a request comes from, if it is one of the console's; empty else.
func (v *visit) sameReferer() string {
	u, err := url.Parse(v.r.Referer())
	if err != nil || u.Host != v.r.Host || u.Path != Path && !strings.HasPrefix(u.Path, Path+"/") || v.routes[u.Path][http.MethodGet].answer == nil {
		return ""
	}
	q := u.Query()
	q.Del("said")
	u = &url.URL{Path: u.Path, RawQuery: q.Encode()}
	return u.String()
}

// todoOf is what to do about an error of a code.
func todoOf(code core.Code) string {
	switch code {
	case core.CodeInvalid:
		return "Go back, change it, and try again."
	case core.CodeNotFound:
		return "It may have been deleted, or have ended so long ago that its record is gone. Look for it among the agents."
	case core.CodeForbidden:
		return "Sign in with a token that may do it, or ask whoever gave you yours."
	case core.CodeConflict:
		return "It has changed since the page was made: load it again, and see how it is now."
	case core.CodeUnavailable:
		return "Check that Redis is running and that this process reaches it, then load the page again. duly doctor says what is wrong."
	case problem.CodeNoRoute, problem.CodeMethod:
		return "The menu above has all pages."
	case core.CodeInternal:
		return "The log of this process says more."
	default:
		return ""
	}
}

// asset answers with one of the embedded files. Its address has a hash of it, so that browsers may keep it.
func (*console) asset(v *visit) {
	name := strings.TrimPrefix(v.r.URL.Path, assetPath)
	data, err := files.ReadFile("assets/" + name)
	if err != nil || strings.Contains(name, "/") || v.r.Method != http.MethodGet && v.r.Method != http.MethodHead {
		v.refuse(problem.New(problem.CodeNoRoute, "no such file"))
		return
	}
	v.w.Header().Set("Content-Type", typeOf(name))
	if v.r.URL.Query().Get("v") == version(name) {
		v.w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	_, _ = v.w.Write(data) // the client may have gone
}

// typeOf is the type of an embedded file. What the machine knows of types does not count.
func typeOf(name string) string {
	switch _, ext, _ := strings.Cut(name, "."); {
	case strings.HasSuffix(ext, "js"):
		return "text/javascript; charset=utf-8"
	case ext == "css":
		return "text/css; charset=utf-8"
	case ext == "svg":
		return "image/svg+xml"
	default:
		return "text/plain; charset=utf-8"
	}
}

// version is a short hash of an embedded file; empty if there is none.
func version(name string) string {
	data, err := files.ReadFile("assets/" + name)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:6])
}
