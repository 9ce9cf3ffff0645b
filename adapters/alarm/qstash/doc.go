// Package qstash has Upstash's QStash call a host when something falls due: it is a core.Alarm. A message is published for each
// time, which QStash delivers as POST with the body {"all": true}, as POST /v1/run-due takes it, and repeats if it is answered with anything but 2xx.
//
// QStash proves who calls by a signature, which duly's API checks if QStash is among the senders of the file. Else the message carries a token of
// that API (DestinationToken).
package qstash
