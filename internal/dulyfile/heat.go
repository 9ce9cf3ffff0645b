package dulyfile

// The policy of the file: from when on agents are hot, and what follows.

import (
	"errors"
	"strings"

	"github.com/seed-6f6f2c11/duly/adapters/heat"
	"github.com/seed-6f6f2c11/duly/core"
)

// readHeat reads the key heat.
func (f *File) readHeat(p place) error {
	if p.node == nil || p.empty() {
		return nil
	}
	h := heat.Policy{}
	var crowd int
	if err := p.read(map[string]reader{
		"from": number(&h.From), "level": integer((*int)(&h.Level)), "cooled": integer((*int)(&h.Cooled)), "crowd": integer(&crowd), "delay": duration(&h.Delay),
	}); err != nil {
		return err
	}
	h.Crowd, f.Heat = int64(crowd), &h
	wrong, ok := errors.AsType[*core.ConfigError](h.Validate())
	if !ok {
		return nil
	}
	field := strings.ToLower(wrong.Field)
	if at := p.of(field); at != p {
		return at.fail("%s", wrong.Reason)
	}
	return p.fail("%s %s", field, wrong.Reason)
}

// policy is the file's policy; nil without one.
func (f *File) policy() core.Policy {
	if f.Heat == nil {
		return nil
	}
	return f.Heat
}
