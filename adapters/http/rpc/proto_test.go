package rpc_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/seed-6f6f2c11/duly/adapters/http/rpc/schedulerpb"
)

// The generated code is that of the description.

const description = "proto/duly/scheduler/v1/scheduler.proto"

// Each message, field, number and call of the description is in the code, and none besides.
func TestTheCodeHasTheDescription(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(description)
	require.NoError(t, err)
	var said []string
	message := ""
	for line := range strings.SplitSeq(string(text), "\n") {
		line, _, _ = strings.Cut(line, "//")
		if m := regexp.MustCompile(`^message (\w+)`).FindStringSubmatch(line); m != nil {
			message = m[1]
			said = append(said, message)
		}
		if m := regexp.MustCompile(`^\s+(repeated )?([\w.]+) (\w+) = (\d+);`).FindStringSubmatch(line); m != nil {
			said = append(said, fmt.Sprintf("%s %s%s %s = %s", message, m[1], m[2], m[3], m[4]))
		}
		if m := regexp.MustCompile(`^\s+rpc (\w+)\((\w+)\) returns \((\w+)\);`).FindStringSubmatch(line); m != nil {
			said = append(said, fmt.Sprintf("rpc %s(%s) %s", m[1], m[2], m[3]))
		}
	}
	assert.ElementsMatch(t, described(schedulerpb.File_duly_scheduler_v1_scheduler_proto), said, "run make proto")
	assert.Greater(t, len(said), 50)
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
			if f.IsList() {
				kind = "repeated " + kind
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
	run(protoc, "-I", "proto", "--go_out="+dir, "--connect-go_out="+dir, "--go_opt"+module, "--connect-go_opt"+module+",package_suffix=",
		strings.TrimPrefix(description, "proto/"))
	version := regexp.MustCompile(`(?m)^// +\(?(protoc|- protoc) .*\n|^// \tprotoc .*\n`)
	for _, file := range []string{"schedulerpb/scheduler.pb.go", "schedulerpb/scheduler.connect.go"} {
		want, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		have, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, version.ReplaceAllString(string(want), ""), version.ReplaceAllString(string(have), ""), "run make proto")
	}
}
