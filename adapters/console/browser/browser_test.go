package browser_test

// The browser: where it is found, what it complains about, and what axe does.

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// axe is dist/axe.min.js of axe-core@4.14.1, as npm has it, packed.
//
//go:embed testdata/axe.min.js.gz
var axe []byte

// chromium is where a Chromium is; the test is skipped if there is none.
func chromium(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("DULY_TEST_CHROMIUM"); path != "" {
		return path
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	home, _ := os.UserCacheDir()
	for _, pattern := range []string{"chromium-*/chrome-linux*/chrome", "chromium-*/chrome-mac*/Chromium.app/Contents/MacOS/Chromium"} {
		if found, _ := filepath.Glob(filepath.Join(home, "ms-playwright", pattern)); len(found) > 0 {
			return found[len(found)-1]
		}
	}
	t.Skip("no Chromium: set DULY_TEST_CHROMIUM, or put chromium or google-chrome into PATH")
	return ""
}

// tab is a page of a browser, and what it complained about.
type tab struct {
	*testing.T

	ctx context.Context
	url string

	mu        sync.Mutex
	complains []string
}

// open opens a browser at an address; nothing is loaded yet.
func open(t *testing.T, url string) *tab {
	t.Helper()
	path := chromium(t)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WindowSize(1200, 900))
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	ctx, end := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(end)
	ctx, close := chromedp.NewContext(ctx)
	t.Cleanup(close)
	b := &tab{T: t, ctx: ctx, url: url}
	chromedp.ListenTarget(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			b.complains = append(b.complains, e.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
				b.complains = append(b.complains, fmt.Sprintf("%s: %s", e.Type, e.Args[0].Value))
			}
		case *log.EventEntryAdded:
			// That a page which does not exist, or must not be seen, has such a status is what is asked for.
			if e.Entry.Level == log.LevelError && !strings.Contains(e.Entry.Text, "Failed to load resource: the server responded with a status of 4") {
				b.complains = append(b.complains, fmt.Sprintf("%s: %s", e.Entry.Source, e.Entry.Text))
			}
		}
	})
	// The browser lives as long as the context of the first call.
	require.NoError(t, chromedp.Run(ctx, log.Enable(), runtime.Enable(), emulation.SetTimezoneOverride("Asia/Tokyo")))
	return b
}

// run does things in the tab.
func (b *tab) run(actions ...chromedp.Action) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 20*time.Second)
	defer cancel()
	require.NoError(b, chromedp.Run(ctx, actions...))
}

// quiet checks that the browser has complained about nothing: no error of a script, nothing that the policy of the page forbids.
func (b *tab) quiet(about string) {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	assert.Empty(b, b.complains, about)
	b.complains = nil
}

// goTo loads a page.
func (b *tab) goTo(path string) {
	b.Helper()
	b.run(chromedp.Navigate(b.url+path), chromedp.WaitReady("main"))
}

// value is that of an expression on the page.
func value[V any](b *tab, expression string) V {
	b.Helper()
	var v V
	b.run(chromedp.Evaluate(expression, &v, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	return v
}

// text is what can be read on the page.
func (b *tab) text() string {
	b.Helper()
	return value[string](b, "document.body ? document.body.innerText : ''")
}

// becomes waits until an expression is true. While a page is loaded nothing is.
func (b *tab) becomes(expression, about string) {
	b.Helper()
	require.Eventually(b, func() bool {
		var is bool
		return chromedp.Run(b.ctx, chromedp.Evaluate(expression, &is)) == nil && is
	}, 15*time.Second, 20*time.Millisecond, about)
}

// sees waits until the page has a text: for what scripts do.
func (b *tab) sees(text string) {
	b.Helper()
	quoted, err := json.Marshal(text)
	require.NoError(b, err)
	b.becomes(fmt.Sprintf("document.body.innerText.includes(%s)", quoted), text)
}

// accessible checks a page with axe, in light and dark: all rules of WCAG 2.0 to 2.2, A and AA.
func (b *tab) accessible(about string) {
	b.Helper()
	r, err := gzip.NewReader(bytes.NewReader(axe))
	require.NoError(b, err)
	source, err := io.ReadAll(r)
	require.NoError(b, err)
	b.run(chromedp.Evaluate(string(source)+";0", nil))
	for _, scheme := range []string{"light", "dark"} {
		b.run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
		found := value[string](b, `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}).then(r =>
			JSON.stringify(r.violations.map(v => v.id + ": " + v.nodes.map(n => n.html.slice(0, 150) + " " + n.failureSummary).join(" | "))))`)
		var violations []string
		require.NoError(b, json.Unmarshal([]byte(found), &violations))
		assert.Empty(b, violations, "%s, %s", about, scheme)
	}
	b.run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}}))
}
