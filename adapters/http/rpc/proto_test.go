package rpc_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/seed-6f6f2c11/duly/adapters/http/rpc/agentmemorypb"
	"github.com/seed-6f6f2c11/duly/adapters/http/rpc/schedulerpb"
)

// The generated code is that of the descriptions.

var descriptions = map[string]protoreflect.FileDescriptor{
	"duly/scheduler/v1/scheduler.proto":     schedulerpb.File_duly_scheduler_v1_scheduler_proto,
	"duly/agentmemory/v1/agentmemory.proto": agentmemorypb.File_duly_agentmemory_v1_agentmemory_proto,
}

// Each message, field, number and call of a description is in the code, and none besides.
func TestTheCodeHasTheDescription(t *testing.T) {
	t.Parallel()
	all := 0
	for path, file := range descriptions {
		text, err := os.ReadFile(filepath.Join("proto", path))
		require.NoError(t, err)
		said := declared(string(text))
		assert.ElementsMatch(t, described(file), said, "%s: run make proto", path)
		all += len(said)
	}
	assert.Greater(t, all, 70)
}

// declared is what a description says, a line each.
func declared(text string) []string {
	var said []string
	message := ""
	for line := range strings.SplitSeq(text, "\n") {
		line, _, _ = strings.Cut(line, "//")
		if m := regexp.MustCompile(`^message (\w+)`).FindStringSubmatch(line); m != nil {
			message = m[1]
			said = append(said, message)
		}
		if m := regexp.MustCompile(`^\s+((?:repeated|optional) )?([\w.]+|map<string, \w+>) (\w+) = (\d+);`).FindStringSubmatch(line); m != nil {
			said = append(said, fmt.Sprintf("%s %s%s %s = %s", message, m[1], m[2], m[3], m[4]))
		}
		if m := regexp.MustCompile(`^\s+rpc (\w+)\((\w+)\) returns \((\w+)\);`).FindStringSubmatch(line); m != nil {
			said = append(said, fmt.Sprintf("rpc %s(%s) %s", m[1], m[2], m[3]))
		}
	}
	return said
}

// described is what generated code knows, in the same words.
func described(file protoreflect.FileDescriptor) []string {
	var out []string
	for i := range file.Messages().Len() {
		m := file.Messages().Get(i)
		out = append(out, string(m.Name()))
		for j := range m.Fields().Len() {
			f := m.Fields().Get(j)
			kind := f.Kind().String()
			if f.Message() != nil {
				kind = strings.TrimPrefix(string(f.Message().FullName()), string(file.Package())+".")
			}
			if f.Enum() != nil {
				kind = string(f.Enum().Name())
			}
			switch {
			case f.IsMap():
				kind = fmt.Sprintf("map<%s, %s>", f.MapKey().Kind(), f.MapValue().Kind())
			case f.IsList():
				kind = "repeated " + kind
			case f.HasOptionalKeyword():
				kind = "optional " + kind
			}
			out = append(out, fmt.Sprintf("%s %s %s = %d", m.Name(), kind, f.Name(), f.Number()))
		}
	}
	for i := range file.Services().Len() {
		for j := range file.Services().Get(i).Methods().Len() {
			m := file.Services().Get(i).Methods().Get(j)
			out = append(out, fmt.Sprintf("rpc %s(%s) %s", m.Name(), m.Input().Name(), m.Output().Name()))
		}
	}
	return out
}

// Where there is a protoc, what it makes of the description is what is in the repository, but for its own version.
func TestTheCodeIsGenerated(t *testing.T) {
	t.Parallel()
	protoc, err := exec.LookPath("protoc")
	if err != nil {
		t.Skip("no protoc")
	}
	dir := t.TempDir()
	run := func(name string, args ...string) {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Env = append(os.Environ(), "GOBIN="+dir, "PATH="+dir+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", name, out)
	}
	run("go", "install", "google.golang.org/protobuf/cmd/protoc-gen-go", "connectrpc.com/connect/cmd/protoc-gen-connect-go")
	const module = "=module=github.com/seed-6f6f2c11/duly/adapters/http/rpc"
	args := []string{"-I", "proto", "--go_out=" + dir, "--connect-go_out=" + dir, "--go_opt" + module, "--connect-go_opt" + module + ",package_suffix="}
	run(protoc, append(args, slices.Collect(maps.Keys(descriptions))...)...)
	version := regexp.MustCompile(`(?m)^// +\(?(protoc|- protoc) .*\n|^// \tprotoc .*\n`)
	for _, file := range []string{"schedulerpb/scheduler.pb.go", "schedulerpb/scheduler.connect.go", "agentmemorypb/agentmemory.pb.go"} {
		want, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		have, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, version.ReplaceAllString(string(want), ""), version.ReplaceAllString(string(have), ""), "run make proto")
	}
}
