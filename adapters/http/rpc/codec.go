package rpc

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// The JSON of the calls: as strict as for all other calls. Connect's own codec ignores unknown fields, so a misspelt one
// would be lost.

// strictJSON reads and writes messages as JSON. Its value is the name of the codec.
type strictJSON string

// The names that connect has its own codec by.
var codecs = []strictJSON{"json", "json; charset=utf-8"}

// Name is the name of the codec.
func (c strictJSON) Name() string { return string(c) }

// errNotProto says that a message is none.
var errNotProto = errors.New("the message is not a protobuf message")

// Marshal writes a message.
func (strictJSON) Marshal(message any) ([]byte, error) {
	m, ok := message.(proto.Message)
	if !ok {
		return nil, errNotProto
	}
	return protojson.Marshal(m)
}

// Unmarshal reads a message. A field that it does not have is refused by name.
func (strictJSON) Unmarshal(data []byte, message any) error {
	m, ok := message.(proto.Message)
	if !ok {
		return errNotProto
	}
	if err := protojson.Unmarshal(data, m); err != nil {
		return fmt.Errorf("the request is not what the call takes: %w", err)
	}
	return nil
}
