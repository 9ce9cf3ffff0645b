package hooks

// Events of https://cloudevents.io: both modes for HTTP become one form, in which attributes are headers and the body is the data.

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"strings"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/adapters/internal/signature"
	"github.com/seed-6f6f2c11/duly/core"
)

// token is the claim of a bearer token.
func token(header http.Header) (signature.Claim, error) {
	scheme, text, _ := strings.Cut(header.Get("Authorization"), " ")
	text = strings.TrimSpace(text)
	if text == "" || !strings.EqualFold(scheme, "Bearer") {
		return signature.Claim{}, signature.ErrNone
	}
	return signature.Claim{Token: text}, nil
}

// required are the attributes that each event has.
var required = []string{"Ce-Specversion", "Ce-Id", "Ce-Source", "Ce-Type"}

// asEvent makes a message in structured mode one in binary mode, and refuses what is no event.
func asEvent(m *message) error {
	media, _, err := mime.ParseMediaType(m.header.Get("Content-Type"))
	switch {
	case err == nil && media == "application/cloudevents+json":
		if err := unwrap(m); err != nil {
			return err
		}
	case err == nil && strings.HasPrefix(media, "application/cloudevents"):
		return problem.New(problem.CodeMediaType, "the body must be one event: application/cloudevents+json, or headers that begin with ce-; no batch")
	}
	for _, name := range required {
		if m.header.Get(name) == "" {
			return &core.InvalidError{Field: strings.ToLower(name), Reason: "is required: the request must be an event of CloudEvents, in binary or structured mode"}
		}
	}
	if m.header.Get("Ce-Specversion") != "1.0" {
		return &core.InvalidError{Field: "ce-specversion", Reason: "must be 1.0"}
	}
	return nil
}

// unwrap puts the attributes of an event in structured mode into headers, and its data into the body.
func unwrap(m *message) error {
	names, values, err := core.JSONObject("body", m.body)
	if err != nil {
		return err
	}
	// Headers of the request that pass for attributes are none.
	header := http.Header{}
	for name, all := range m.header {
		if !strings.HasPrefix(name, "Ce-") {
			header[name] = all
		}
	}
	m.header, m.body = header, nil
	for _, name := range names {
		switch name {
		case "data":
			m.body = values[name]
		case "data_base64":
			if m.body, err = fromBase64(values[name]); err != nil {
				return err
			}
		default:
			header.Set("Ce-"+name, textOf(values[name]))
		}
	}
	return nil
}

// fromBase64 is data that is no JSON.
func fromBase64(value json.RawMessage) ([]byte, error) {
	var text string
	err := json.Unmarshal(value, &text)
	data, wrong := base64.StdEncoding.DecodeString(text)
	if errors.Join(err, wrong) != nil {
		return nil, &core.InvalidError{Field: "data_base64", Reason: "must be a string of base64"}
	}
	return data, nil
}

// textOf is the value of an attribute: a string, a number or a boolean.
func textOf(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

// eventID names an event: ids are unique for their source. It is a digest, as both can be long.
func eventID(header http.Header) string {
	digest := sha256.Sum256([]byte(header.Get("Ce-Source") + "\x00" + header.Get("Ce-Id")))
	return hex.EncodeToString(digest[:])
}
