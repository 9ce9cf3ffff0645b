package main_test

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
)

// A person opens the address that a mail holds, at the URL without a signature, and answers once; nothing else is to be had there.
func TestPeopleAnswerWithoutASignature(t *testing.T) {
	t.Parallel()
	const secret = "a secret of the stack"
	w := newWorld(t, "DULY_APPROVALS_SECRET="+secret, "DULY_APPROVALS_URL=https://ask.example")
	e := w.environment(20 * time.Second)
	w.submit(core.NewTask{Agent: "ada", ID: "1", Kind: "asks"})
	w.answer(e, tick)
	waiting := w.task("1").Awaiting
	require.NotNil(t, waiting)
	a, err := httpadapter.NewApprovals("https://ask.example", []byte(secret))
	require.NoError(t, err)
	address, err := a.URL(httpadapter.Approval{
		Question: core.Question{Agent: "ada", ID: "1", Key: "may", Fence: waiting.Fence, Text: "Refund 40 EUR?"}, For: time.Hour,
	}, time.Now())
	require.NoError(t, err)
	u, err := url.Parse(address)
	require.NoError(t, err)
	visit := func(method, path, query, body string) map[string]any {
		return w.answer(e, fmt.Sprintf(`{"version":"2.0","rawPath":%q,"rawQueryString":%q,"headers":{"content-type":"application/x-www-form-urlencoded","host":"ask.example"},
			"requestContext":{"domainName":"ask.example","http":{"method":%q,"path":%q}},"body":%q,"isBase64Encoded":false}`, path, query, method, path, body))
	}
	page := visit("GET", u.Path, u.RawQuery, "")
	assert.EqualValues(t, 200, page["statusCode"])
	assert.Contains(t, page["body"], "Refund 40 EUR?")
	assert.EqualValues(t, 401, visit("GET", "/v1/stats", "", "")["statusCode"], "nothing else")
	assert.EqualValues(t, 401, visit("POST", "/v1/signals/ada/may", "", "{}")["statusCode"])
	assert.EqualValues(t, 200, visit("POST", u.Path, u.RawQuery, "decision=approve")["statusCode"])
	assert.EqualValues(t, 409, visit("POST", u.Path, u.RawQuery, "decision=refuse")["statusCode"], "once")
	w.answer(e, tick)
	assert.Equal(t, core.StatusCompleted, w.task("1").Status)
}
