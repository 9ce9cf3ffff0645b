package dulyfile

// Readers of single values: texts, numbers, durations.

import (
	"math"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/seed-6f6f2c11/duly/core/schedule"
)

// text reads any single value literally, so that an id such as 007 need not be quoted. The empty one is
// refused: it would be taken for what was left out.
func text(into *string) reader {
	return func(p place) error {
		switch {
		case p.empty():
		case p.value().Kind != yaml.ScalarNode:
			return p.fail("must be a string")
		case p.value().Value == "":
			return p.fail("must not be empty: leave it out if it has no value")
		default:
			*into = p.value().Value
		}
		return nil
	}
}

// texts reads an array of strings, each of them literally.
func texts(into *[]string) reader {
	return func(p place) error {
		elements, err := p.list()
		if err != nil {
			return p.fail("must be an array of strings")
		}
		for _, e := range elements {
			if n := e.value(); n.Kind != yaml.ScalarNode {
				return e.fail("must be a string")
			}
			*into = append(*into, e.value().Value)
		}
		return nil
	}
}

// integer reads a whole number from 1 on.
// Zero means "not set" to core, so a zero in the file would be ignored silently.
func integer(into *int) reader {
	return func(p place) error {
		if err := whole(into)(p); err != nil || p.empty() {
			return err
		}
		if *into == 0 {
			return p.fail("must be at least 1, not 0")
		}
		return nil
	}
}

// atLeastOne reads a whole number of something that core takes for any number if it is negative.
func atLeastOne(into *int) reader {
	return func(p place) error {
		if err := whole(into)(p); err != nil || p.empty() {
			return err
		}
		if *into < 1 {
			return p.fail("must be at least 1, not %d", *into)
		}
		return nil
	}
}

// whole reads any whole number.
func whole(into *int) reader {
	return func(p place) error {
		// A fraction would be cut off without a word.
		if !p.empty() && (p.value().ShortTag() == "!!float" || p.value().Decode(into) != nil) {
			return p.fail("must be a whole number")
		}
		return nil
	}
}

// number reads a number that is not zero, which core takes for one that was left out.
func number(into *float64) reader {
	return func(p place) error {
		switch {
		case p.empty():
		case p.value().Decode(into) != nil:
			return p.fail("must be a number")
		case *into == 0:
			return p.fail("must not be 0: leave it out for the default")
		}
		return nil
	}
}

// share reads a part of a whole; negative for no bound.
func share(into *float64) reader {
	return func(p place) error {
		if err := number(into)(p); err != nil {
			return err
		}
		if *into > 1 || math.IsNaN(*into) || *into > 0 && *into < 0.001 {
			return p.fail("must be a part of 1 from 0.001 on, such as 0.25, or negative for no bound")
		}
		return nil
	}
}

// never is a number of failures after which nothing happens, and none what core takes for a setting that is switched off,
// as its zero means the default.
// The file says 0 for "none", and the zero of a setting means the default.
const (
	never = -1
	none  = -1
)

// orNever reads a number of failures after which something happens; zero and less are never.
func orNever(into *int) reader {
	return func(p place) error {
		if err := whole(into)(p); err != nil || p.empty() {
			return err
		}
		if *into <= 0 {
			*into = never
		}
		return nil
	}
}

// orNone reads how many there may be; zero is none, not the default.
func orNone(into *int) reader {
	return func(p place) error {
		err := whole(into)(p)
		switch {
		case err != nil || p.empty():
		case *into < 0:
			err = p.fail("must not be negative, not %d", *into)
		case *into == 0:
			*into = none
		}
		return err
	}
}

// boolean reads true or false.
func boolean(into *bool) reader {
	return func(p place) error {
		if !p.empty() && p.value().Decode(into) != nil {
			return p.fail("must be true or false")
		}
		return nil
	}
}

// duration reads a duration that is longer than nothing.
func duration(into *time.Duration) reader {
	return func(p place) error {
		if err := span(into)(p); err != nil || p.empty() {
			return err
		}
		if *into == 0 {
			return p.fail("must be longer than 0s: leave it out for the default")
		}
		return nil
	}
}

// durationOrNone reads a duration; zero is none, not the default.
func durationOrNone(into *time.Duration) reader {
	return func(p place) error {
		if err := span(into)(p); err != nil || p.empty() {
			return err
		}
		if *into == 0 {
			*into = none
		}
		return nil
	}
}

// span reads a duration, also of zero.
// YAML has no durations, so they are strings.
func span(into *time.Duration) reader {
	return func(p place) error {
		if p.empty() {
			return nil
		}
		d, err := schedule.ParseDuration(p.value().Value)
		if err != nil {
			return p.fail("must be a duration such as 90s, 1h30m or 1d")
		}
		if d < 0 {
			return p.fail("must not be negative, not %s", d)
		}
		*into = d
		return nil
	}
}
