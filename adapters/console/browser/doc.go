// Package browser tests the console as people use it: in Chromium, on a real daemon and a real Redis. It is a module of its own, so that users of duly
// do not get the modules that drive a browser.
package browser
