package apicall

import (
	"net/netip"
	"net/url"

	"github.com/seed-6f6f2c11/duly/core"
)

// CheckURL refuses what is no URL of a server, and http but to this machine, unless that is allowed: a token on the way could be read. The error
// is a *core.ConfigError about the field, without the URL.
func CheckURL(field, text string, insecure bool) error {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" {
		return &core.ConfigError{Field: field, Reason: "must be a URL such as https://duly.example/v1/run-due"}
	}
	here, err := netip.ParseAddr(u.Hostname())
	local := u.Hostname() == "localhost" || err == nil && here.Unmap().IsLoopback()
	if u.Scheme == "http" && !local && !insecure {
		return &core.ConfigError{Field: field, Reason: "must begin with https://: what is sent could be read on the way"}
	}
	return nil
}
