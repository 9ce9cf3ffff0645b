package dulyfile

// The streams of MemOS that a daemon reads.

// MemOSStream says where they are. What is empty has a default: the Redis of the store, and MemOS's own prefix.
type MemOSStream struct {
	URL, Prefix string

	at place
}

// Fail is an error about the streams, at their place in the file.
func (m *MemOSStream) Fail(format string, args ...any) error { return m.at.fail(format, args...) }

// readMemOS reads the key memos. An empty stream is one with defaults, so that stream: {} reads MemOS's own.
func (f *File) readMemOS(p place) error {
	var stream place
	if p.node == nil || p.empty() {
		return nil
	}
	if err := p.read(map[string]reader{"stream": func(p place) error { stream = p; return nil }}); err != nil {
		return err
	}
	if stream.node == nil || stream.empty() {
		return p.fail("must have stream, such as stream: {} for the Redis of the store")
	}
	m := &MemOSStream{at: stream}
	f.MemOS = m
	return stream.read(map[string]reader{"url": text(&m.URL), "prefix": text(&m.Prefix)})
}
