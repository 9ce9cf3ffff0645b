package memosstream

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/adapters/internal/memosmessage"
	"github.com/seed-6f6f2c11/duly/core"
)

// Entries: how the fields of one become a message, and the message a task.

// The fields of an entry: strings, and JSON in strings. Others are handed on to the handler as they are.
var (
	stringFields = []string{
		"item_id", "user_id", "trace_id", "session_id", "label", "cube_id", "cube", "content", "timestamp", "user_name", "task_id", "api_path",
	}
	jsonFields = []string{"info", "chat_history", "user_context"}
)

// requiredFields are those without which MemOS itself drops an entry.
var requiredFields = []string{"user_id", "label", "content"}

// taskOf is the task that an entry makes: the same one whenever it is delivered.
func taskOf(name string, m *redis.XMessage) (core.NewTask, error) {
	message := map[string]any{"stream_key": name, "redis_message_id": m.ID}
	rest := map[string]any{}
	for field, value := range m.Values {
		text, ok := value.(string)
		if !ok || !utf8.ValidString(text) || !utf8.ValidString(field) {
			return core.NewTask{}, &core.InvalidError{Field: clip(field), Reason: "is not valid UTF-8"}
		}
		rest[field] = text
	}
	for _, field := range requiredFields {
		if _, ok := rest[field]; !ok {
			return core.NewTask{}, &core.InvalidError{Field: field, Reason: "is required"}
		}
	}
	move(rest, message)
	raw, err := json.Marshal(message)
	if err != nil {
		return core.NewTask{}, err
	}
	t, err := memosmessage.Task(raw)
	if err != nil {
		return t, err
	}
	if t.ID == "" {
		t.ID = idOf(name, m.ID)
	}
	if len(rest) == 0 {
		return t, nil
	}
	// Fields of a newer MemOS: unknown here, but the handler may know them.
	maps.Copy(message, rest)
	t.Payload, err = json.Marshal(message)
	return t, err
}

// move puts the fields that are known into a message, as its senders by HTTP write it. What is empty is left out, and so is JSON that is
// broken: MemOS reads both as none.
func move(fields, message map[string]any) {
	for _, field := range stringFields {
		if text, _ := fields[field].(string); text != "" || field == "content" {
			message[field] = text
		}
		delete(fields, field)
	}
	if cube, ok := message["cube_id"]; ok {
		message["mem_cube_id"] = cube
	}
	for _, field := range jsonFields {
		text, _ := fields[field].(string)
		if data := []byte(text); text != "" && core.CheckJSON(field, data) == nil {
			message[field] = json.RawMessage(data)
		}
		delete(fields, field)
	}
	delete(fields, "stream_key")
	delete(fields, "redis_message_id")
	delete(fields, "mem_cube_id")
}

// idOf is the id of a task whose message has none, or one that another message has: the stream and the id of its entry.
func idOf(name, entry string) string {
	sum := sha256.Sum256([]byte(name))
	return "memos-" + entry + "-" + hex.EncodeToString(sum[:6])
}

// clip bounds the name of a field in an error.
func clip(name string) string {
	var out []rune
	for _, r := range name {
		if out = append(out, r); len(out) == 40 {
			break
		}
	}
	return string(out)
}
