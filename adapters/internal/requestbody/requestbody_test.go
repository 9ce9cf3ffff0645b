package requestbody_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/adapters/internal/requestbody"
	"github.com/seed-6f6f2c11/duly/core"
)

func TestABodyIsTakenInOrRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		media, body string
		cut         bool
		code        core.Code
	}{
		"whole":       {media: "application/json; charset=utf-8", body: `{}`},
		"no media":    {body: `{}`, code: problem.CodeMediaType},
		"other media": {media: "text/plain", body: `{}`, code: problem.CodeMediaType},
		"empty":       {media: "application/json", code: core.CodeInvalid},
		"too large":   {media: "application/json", body: strings.Repeat(" ", 11), code: problem.CodeTooLarge},
		"cut off":     {media: "application/json", body: `{`, cut: true, code: core.CodeInvalid},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(c.body))
		r.Header.Set("Content-Type", c.media)
		if c.cut {
			r.Body = io.NopCloser(io.MultiReader(strings.NewReader(c.body), iotest.ErrReader(io.ErrUnexpectedEOF)))
		}
		r.Body = http.MaxBytesReader(httptest.NewRecorder(), r.Body, 10)
		data, err := requestbody.JSON(r)
		if c.code == "" {
			require.NoError(t, err, name)
			assert.Equal(t, c.body, string(data))
			continue
		}
		require.Error(t, err, name)
		assert.Equal(t, c.code, problem.Of(err).Code, name)
		_, ofInput := errors.AsType[*core.InvalidError](err)
		assert.Equal(t, name == "empty", ofInput, "a message that was cut off may arrive whole the next time")
	}
}
