package dulyfile

// Tools: how models see a kind of the file.

import (
	"encoding/json"

	"github.com/seed-6f6f2c11/duly/core"
)

// readTool reads how models see a kind. The schema of its arguments is JSON, written as YAML.
func (h *Handler) readTool(p place) error {
	if p.empty() {
		return p.fail("must be an object, such as { description: writes a digest }")
	}
	t := &core.Tool{}
	h.Settings.Tool = t
	return p.read(map[string]reader{
		"name": text(&t.Name), "description": text(&t.Description),
		"input": func(p place) error {
			var v any
			if err := p.value().Decode(&v); err != nil {
				return p.fail("cannot be converted to JSON: %w", err)
			}
			data, err := json.Marshal(v)
			if err != nil {
				return p.fail("cannot be converted to JSON: %w", err)
			}
			t.Input = data
			return nil
		},
	})
}
