// Package contexts keeps the servers and the stores that a user works with, by names, in a file of that user.
package contexts

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// EnvPath names the file, in place of contexts.yaml in the folder duly of the user's configuration.
const EnvPath = "DULY_CONTEXTS"

// Context is a server with a token, or a Redis.
type Context struct {
	Server string `yaml:"server,omitempty"`
	// Where the token is: in a variable, in a file, or here.
	TokenEnv  string `yaml:"token_env,omitempty"`
	TokenFile string `yaml:"token_file,omitempty"`
	Token     string `yaml:"token,omitempty"`
	// InsecureHTTP sends the token over http:// to another machine.
	InsecureHTTP bool `yaml:"insecure_http,omitempty"`

	Redis  string `yaml:"redis,omitempty"`
	Prefix string `yaml:"prefix,omitempty"`
}

// File is all contexts, and the one that is used where nothing else is named.
type File struct {
	Current  string              `yaml:"current,omitempty"`
	Contexts map[string]*Context `yaml:"contexts,omitempty"`

	path string
	open bool // others than its owner may read it
}

// Path is where the file is.
func Path() (string, error) {
	if path := strings.TrimSpace(os.Getenv(EnvPath)); path != "" {
		return path, nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("there is no folder for the user's configuration (%w): set $%s to a file", err, EnvPath)
	}
	return filepath.Join(dir, "duly", "contexts.yaml"), nil
}

// Load reads the file. One that does not exist has no contexts.
func Load() (*File, error) {
	path, err := Path()
	if err != nil {
		return nil, err
	}
	f := &File{path: path}
	data, err := os.ReadFile(path) //nolint:gosec // the user's own file
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil {
		f.open = info.Mode().Perm()&0o077 != 0
	}
	return f, f.parse(data)
}

// parse reads what a file has, and refuses what it does not know: a misspelt token_env would be no token.
func (f *File) parse(data []byte) error {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(f); err != nil && !errors.Is(err, io.EOF) {
		// The library's error may repeat a value, such as a token.
		return fmt.Errorf("%s is not a file of contexts: correct it, or remove it", f.path)
	}
	for _, name := range f.Names() {
		if f.Contexts[name] == nil {
			f.Contexts[name] = &Context{}
		}
		if err := f.Contexts[name].Check(); err != nil {
			return fmt.Errorf("%s: context %q %w", f.path, name, err)
		}
	}
	return nil
}

// Names are those of all contexts, sorted.
func (f *File) Names() []string { return slices.Sorted(maps.Keys(f.Contexts)) }

// Open reports whether others than the owner may read a secret in the file.
func (f *File) Open() bool {
	return f.open && slices.ContainsFunc(f.Names(), func(name string) bool {
		c := f.Contexts[name]
		return c.Token != "" || strings.Contains(c.Redis, "@")
	})
}

// Where is the path of the file.
func (f *File) Where() string { return f.path }

// Set adds a context, or replaces it.
func (f *File) Set(name string, c *Context) {
	if f.Contexts == nil {
		f.Contexts = map[string]*Context{}
	}
	f.Contexts[name] = c
}

// Save writes the file, for its owner alone. It is whole at any moment.
func (f *File) Save() error {
	data, err := yaml.Marshal(f)
	if err != nil {
		return err
	}
	dir := filepath.Dir(f.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	// CreateTemp makes it readable for the owner alone.
	tmp, err := os.CreateTemp(dir, ".contexts-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // there is none any more when all went well
	_, err = tmp.Write(data)
	if err = cmp.Or(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), f.path)
}

// Check refuses a context that is neither a server nor a Redis, or both. The error follows the name of the context.
func (c *Context) Check() error {
	given := 0
	for _, text := range []string{c.Token, c.TokenEnv, c.TokenFile} {
		if text != "" {
			given++
		}
	}
	switch {
	case c.Server == "" && c.Redis == "":
		return errors.New("needs a server or a redis")
	case c.Server != "" && (c.Redis != "" || c.Prefix != ""):
		return errors.New("has both a server and a redis: it is one of them")
	case c.Redis != "" && (given > 0 || c.InsecureHTTP):
		return errors.New("has a token or insecure_http, which a server needs and a redis does not")
	case given > 1:
		return errors.New("has several of token, token_env and token_file: it needs one")
	}
	return nil
}

// Secret is the token, and where it was found, for people; both are empty if there is none.
func (c *Context) Secret() (token, from string, err error) {
	switch {
	case c.TokenEnv != "":
		token, _, _ = strings.Cut(os.Getenv(c.TokenEnv), ",")
		if token = strings.TrimSpace(token); token == "" {
			return "", "", fmt.Errorf("takes its token from $%s, which is not set", c.TokenEnv)
		}
		return token, "$" + c.TokenEnv, nil
	case c.TokenFile != "":
		data, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return "", "", fmt.Errorf("takes its token from a file: %w", err)
		}
		if token = strings.TrimSpace(string(data)); token == "" {
			return "", "", fmt.Errorf("takes its token from %s, which is empty", c.TokenFile)
		}
		return token, c.TokenFile, nil
	case c.Token != "":
		return c.Token, "the file of contexts", nil
	default:
		return "", "", nil
	}
}
