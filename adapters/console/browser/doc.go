// Package browser looks at the console as people do: in Chromium, on a real daemon and a real Redis. It is a module of its own, so that nobody who uses
// duly gets the modules that drive a browser.
package browser
