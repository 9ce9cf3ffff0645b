package house_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/seed-6f6f2c11/duly"

// contract is the package that says what a store is.
const contract = "core/store"

// subjects are the parts that it is made of, from the ground up. Each may import those before it.
var subjects = []string{"core/store/feed", "core/store/moment", "core/store/alarm", "core/store/bound", "core/store/window", "core/store/audit", "core/store/message", "core/store/server", "core/store/breaker", "core/store/count"}

// outputs is what stands on it, and a store may leave out: what runs print.
const outputs = "core/store/output"

// contractual is true for the contract and its subjects.
func contractual(path string) bool { return path == contract || slices.Contains(subjects, path) }

// subject is the place of a part of the contract, the contract itself being behind all of them; -1 for what is none.
func subject(path string) int { return slices.Index(append(slices.Clone(subjects), contract), path) }

var update = flag.Bool("update", false, "write deps.txt instead of comparing it")

// A goPackage is what `go list` knows of one package. Its imports are those of
// the code that is built, without the tests.
type goPackage struct {
	ImportPath string
	Imports    []string
	Deps       []string // imports, and what they import in turn
}

// A rule says what the packages it is about may not import, and why.
type rule struct {
	name string
	why  string
	// about and forbids are given paths within the module ("core/schedule"),
	// and whole import paths for everything else.
	about   func(path string) bool
	forbids func(importer, imported string) bool
	// transitive looks at the imports' imports as well.
	transitive bool
}

// floors are the rooms of core from the ground up. Each may import those below it.
var floors = []string{
	"core/internal/record", "core/internal/wire", "core/internal/spread", "core/internal/check", "core/internal/bounding", "core/model", "core/internal/codec", "core/internal/plan", "core/internal/outcome",
	"core/internal/decide", "core/internal/slots", "core/internal/absence", "core/internal/shared", "core/internal/ahead", "core/internal/search", "core/internal/waiting", "core/internal/runcontext", "core/internal/term", "core/internal/ticks", "core/internal/printing", "core/internal/base", "core/internal/horizon", "core/internal/replan", "core/internal/activity", "core/internal/booking", "core/internal/late", "core/inspect",
	"core/operate", "core/internal/notices", "core/internal/leases", "core/internal/counters", "core/internal/presence", "core/internal/load", "core/internal/declared", "core/internal/callback", "core/internal/placing", "core",
}

// floor is that of a room; -1 for what is none.
func floor(path string) int { return slices.Index(floors, path) }

// redisFloors are the rooms of the store on Redis from the ground up. Each may import those below it.
var redisFloors = []string{
	"core/redisstore/internal/layout", "core/redisstore/internal/script", "core/redisstore/internal/call", "core/redisstore/internal/bounds", "core/redisstore/internal/beside",
	"core/redisstore/internal/view", "core/redisstore",
}

// redisFloor is that of a room; -1 for what is none.
func redisFloor(path string) int { return slices.Index(redisFloors, path) }

// ofRedis is true for what a room of the store on Redis imports of the others, which has a rule of its own.
func ofRedis(importer, imported string) bool {
	return within("core/redisstore", importer) && within("core/redisstore/internal", imported)
}

// shelves are the rooms of the command line from the ground up. Each may import those below it.
var shelves = []string{
	"internal/cli/startup", "internal/cli/private", "internal/cli/clouds", "internal/cli/doors", "internal/cli/contexts", "internal/cli/folder", "internal/cli/importer", "internal/cli/top",
	"internal/cli/remote", "internal/cli/worker", "internal/cli/table", "internal/cli/linelog", "internal/cli/logs", "internal/cli/exit", "internal/cli/catalogue", "internal/cli/help",
	"internal/cli/storage", "internal/cli/command", "internal/cli/events", "internal/cli/doctor", "internal/cli/due", "internal/cli",
}

// shelf is that of a room of the command line; -1 for what is none.
func shelf(path string) int { return slices.Index(shelves, path) }

// words are what adapters know of core besides its door: they have no state.
func words(path string) bool {
	return contractual(path) || is("core", outputs, "core/model", "core/inspect", "core/operate", "steps")(path)
}

var rules = []rule{
	{
		name:       "core stands alone",
		why:        "core decides the same everywhere: it serves no protocol, knows no host, no store and no cloud",
		about:      func(path string) bool { return under("core")(path) && !store(path) && !testSupport(path) },
		transitive: true,
		forbids: func(_, imported string) bool {
			return store(imported) || under("adapters", "handlers", "cmd", "sam", "examples", "net/http",
				"github.com/redis", "github.com/aws", "cloud.google.com", "google.golang.org",
				"github.com/GoogleCloudPlatform", "github.com/cloudevents")(imported)
		},
	},
	{
		name: "the rooms of core stand on one another",
		why: "whoever changes a room has to know those below it and none above: words, then how they are stored, then plans and decisions, then what is " +
			"looked at, ordered and run. What implements the contract of stores comes in through an interface",
		about: func(path string) bool { return floor(path) >= 0 },
		forbids: func(importer, imported string) bool {
			return ours(imported) && !contractual(imported) && !is("core/schedule", "core/schedule/phrase", outputs)(imported) && (floor(imported) < 0 || floor(imported) >= floor(importer))
		},
	},
	{
		name:  "the contract of stores imports its own subjects alone",
		why:   "whoever writes a store has to know these packages and no other, and can read one subject without those above it",
		about: contractual,
		forbids: func(importer, imported string) bool {
			return ours(imported) && (subject(imported) < 0 || subject(imported) >= subject(importer))
		},
	},
	{
		name:    "schedule imports nothing of ours",
		why:     "when a task is due can be worked out, tested and reused without knowing what a task is",
		about:   is("core/schedule"),
		forbids: func(_, imported string) bool { return ours(imported) },
	},
	{
		name:    "phrases import schedule alone",
		why:     "what a phrase means can be worked out and tested without knowing what a task is",
		about:   is("core/schedule/phrase"),
		forbids: func(_, imported string) bool { return ours(imported) && imported != "core/schedule" },
	},
	{
		name:  "stores import the contract alone",
		why:   "each store keeps the contract by itself, so that one can be checked against the other, and decides nothing",
		about: store,
		forbids: func(importer, imported string) bool {
			return ours(imported) && !contractual(imported) && !is(outputs, "core/store/image")(imported) && !within(importer, imported) && !journals(importer, imported) &&
				!ofRedis(importer, imported)
		},
	},
	{
		name:  "the rooms of the store on Redis stand on one another",
		why:   "whoever changes a room has to know those below it and none above: what is stored, then how scripts are called, then the verbs. No other store knows them",
		about: func(path string) bool { return store(path) },
		forbids: func(importer, imported string) bool {
			return redisFloor(imported) >= 0 && redisFloor(imported) >= redisFloor(importer)
		},
	},
	{
		name:  "adapters import core alone",
		why:   "an adapter translates for one host: a user takes one without its neighbours and without a store",
		about: func(path string) bool { return under("adapters")(path) && !testSupport(path) },
		forbids: func(importer, imported string) bool { // but a part of an adapter knows the whole, and all share what none is
			return ours(imported) && !words(imported) && !under("adapters/internal")(imported) && !signs(importer, imported) && !says(importer, imported) &&
				!within(importer, imported) && !within(imported, importer)
		},
	},
	{
		name:    "steps import core alone",
		why:     "they are a way to write a handler, and core knows nothing of them",
		about:   is("steps"),
		forbids: func(_, imported string) bool { return ours(imported) && imported != "core" },
	},
	{
		name:  "handlers import core alone",
		why:   "a ready-made handler is the same on every host and every store: it knows none of them",
		about: under("handlers"),
		forbids: func(importer, imported string) bool {
			return ours(imported) && !contractual(imported) && !is("core", "core/model", "internal/contract")(imported) && !signs(importer, imported)
		},
	},
	{
		name: "only programs that name a vendor link its library",
		why:  "each is larger than the rest of a function, and the quickstart is built from nothing within a minute",
		about: func(path string) bool {
			return under("core", "adapters", "handlers", "sam", "examples", "host", "internal/dulyfile", "internal/contract")(path) && !vendor(path)
		},
		transitive: true,
		forbids: func(_, imported string) bool {
			return under("github.com/aws/aws-sdk-go-v2", "google.golang.org/api", "cloud.google.com/go/auth")(imported)
		},
	},
	{
		name: "functions start no programs",
		why:  "a function has no programs to start, and a cold start loads each byte of what starts them",
		about: func(path string) bool { // the protocol of models has clients that start servers; no function links it
			return under("core", "adapters", "sam", "handlers/webhook", "internal/contract")(path) && path != "adapters/mcp"
		},
		transitive: true,
		forbids:    func(_, imported string) bool { return is("os/exec", "handlers/exec")(imported) },
	},
	{
		name: "only mains join adapters and stores",
		why:  "which store serves which adapter is the choice of a program, not of a library",
		about: func(path string) bool {
			return !under("cmd", "internal/cli", "internal/dulyfile", "host", "sam", "examples")(path) && !testSupport(path)
		},
		forbids: func(importer, imported string) bool {
			shared := under("adapters/internal")(imported) && under("adapters")(importer)
			return (under("adapters")(imported) || store(imported)) && !shared && !within(importer, imported) && !within(imported, importer) &&
				!journals(importer, imported) && !ofRedis(importer, imported) && !says(importer, imported)
		},
	},
	{
		name:    "a command is the commands of the program",
		why:     "a main is too short to be tested: what it runs is in internal/cli",
		about:   under("cmd"),
		forbids: func(_, imported string) bool { return ours(imported) && !under("internal/cli")(imported) },
	},
	{
		name:  "the file knows neither the command line nor a host",
		why:   "what duly.yaml says is the same whichever command reads it, and is tested without one",
		about: under("internal/dulyfile"),
		forbids: func(_, imported string) bool { // but clocks outside, policies, and what reads messages, which are no hosts
			return under("adapters", "internal/cli", "github.com/spf13")(imported) && !under("adapters/alarm", "adapters/heat", "adapters/hooks")(imported)
		},
	},
	{
		name:  "the rooms of the command line stand on one another",
		why:   "what all commands share knows none of them, and a command no other: internal/cli puts them together",
		about: func(path string) bool { return shelf(path) >= 0 },
		forbids: func(importer, imported string) bool {
			return under("internal/cli")(imported) && (shelf(imported) < 0 || shelf(imported) >= shelf(importer))
		},
	},
	{
		name: "the program is no library",
		why: "flags, tables and the file are for people at a terminal: libraries, functions and examples take a core.Config. A host of one's own " +
			"may embed the file in what is deployed, by package host",
		about: func(path string) bool { return !under("cmd", "internal/cli", "internal/dulyfile")(path) },
		forbids: func(importer, imported string) bool {
			embeds := is("host")(importer) && is("internal/dulyfile")(imported)
			return under("internal/cli", "internal/dulyfile", "github.com/spf13")(imported) && !embeds
		},
	},
	{
		name:  "suites are for tests",
		why:   "the contract suites bring testing and testify, which have no place in a user's binary",
		about: func(path string) bool { return !testSupport(path) },
		forbids: func(importer, imported string) bool { // the kit that tries users' own functions is a test of theirs
			return (testSupport(imported) || imported == "testing") && (importer != "examples/verify" || imported != "internal/verify")
		},
	},
	{
		name:    "dulytest is for users' tests",
		why:     "it imports testing, whose flags and size no program wants, and duly's own tests have the contract suites",
		about:   func(path string) bool { return !under("dulytest")(path) },
		forbids: func(_, imported string) bool { return under("dulytest")(imported) },
	},
	{
		name:       "dulytest brings core and the store in memory",
		why:        "a user's test needs no Redis client, no host and no test framework for a task that it makes by hand",
		about:      under("dulytest"),
		transitive: true,
		forbids: func(_, imported string) bool {
			return (under("core/storetest")(imported) && imported != "core/storetest/spy") || under("core/redisstore", "adapters", "handlers", "cmd", "sam", "examples",
				"github.com/redis", "github.com/stretchr", "net/http")(imported)
		},
	},
	{
		name: "the Lambda runtime loop is for functions",
		why: "it takes the process over and never returns: adapters/lambda is a function of an event, which any main or test " +
			"can call, and only the programs that are Lambda functions, sam and the example of one, run the loop",
		about:   func(path string) bool { return !is("sam", "examples/lambda")(path) },
		forbids: func(_, imported string) bool { return imported == "github.com/aws/aws-lambda-go/lambda" },
	},
	{
		name: "only programs that are scraped link the metrics",
		why:  "a function's cold start loads each byte of it, and nobody scrapes a function",
		about: func(path string) bool {
			return under("core", "adapters", "handlers", "sam", "examples")(path) && path != "adapters/http/metrics"
		},
		transitive: true,
		forbids:    func(_, imported string) bool { return under("github.com/prometheus")(imported) },
	},
	{
		name: "only programs that are traced link OpenTelemetry",
		why:  "a function's cold start loads each byte of it, and whoever traces a function of their own imports the adapter themselves",
		about: func(path string) bool {
			return under("core", "adapters", "handlers", "sam", "examples")(path) && path != "adapters/otel" && !vendor(path)
		},
		transitive: true,
		forbids:    func(_, imported string) bool { return under("go.opentelemetry.io")(imported) },
	},
	{
		name: "only programs that speak gRPC link it",
		why:  "a function's cold start loads each byte of it, and its host speaks HTTP",
		about: func(path string) bool {
			return under("core", "adapters", "handlers", "sam", "examples")(path) && !under("adapters/http/rpc")(path)
		},
		transitive: true,
		forbids:    func(_, imported string) bool { return under("connectrpc.com")(imported) },
	},
	{
		name: "only programs that models call link their protocol",
		why:  "a function's cold start loads each byte of it, and most functions are called by a clock",
		about: func(path string) bool {
			return under("core", "adapters", "handlers", "sam", "examples")(path) && path != "adapters/mcp"
		},
		transitive: true,
		forbids:    func(_, imported string) bool { return under("github.com/modelcontextprotocol")(imported) },
	},
	{
		name:    "only programs that people look at link the console",
		why:     "a function's cold start loads each byte of its templates, and nobody opens a page of a function",
		about:   func(path string) bool { return !under("internal/cli", "adapters/console")(path) },
		forbids: func(_, imported string) bool { return under("adapters/console")(imported) },
	},
	{
		name:  "the functions framework is the examples'",
		why:   "it registers functions when it is imported: adapters/gcf is an http.Handler, which any main or test can serve",
		about: func(path string) bool { return !under("examples")(path) },
		forbids: func(_, imported string) bool {
			return under("github.com/GoogleCloudPlatform/functions-framework-go")(imported)
		},
	},
}

// breaches are the imports of pkg that r forbids.
func (r rule) breaches(pkg goPackage) []string {
	importer := short(pkg.ImportPath)
	if !r.about(importer) {
		return nil
	}
	imports := pkg.Imports
	if r.transitive {
		imports = slices.Concat(pkg.Imports, pkg.Deps)
	}
	var found []string
	for _, imported := range imports {
		if r.forbids(importer, short(imported)) {
			found = append(found, imported)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func TestImportsFollowTheRules(t *testing.T) {
	t.Parallel()
	packages := listPackages(t)
	for _, r := range rules {
		for _, pkg := range packages {
			for _, imported := range r.breaches(pkg) {
				t.Errorf("%s imports %s, but %s: %s", short(pkg.ImportPath), short(imported), r.name, r.why)
			}
		}
	}
}

// The quickstart is built without the libraries of vendors, and the program that is released with them.
func TestTheQuickstartLinksNoVendor(t *testing.T) {
	t.Parallel()
	for tags, want := range map[string]bool{"quickstart": false, "": true} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-tags", tags, "-deps", "./cmd/duly").Output()
		require.NoError(t, err)
		for _, library := range []string{"github.com/aws/aws-sdk-go-v2/service/lambda", "google.golang.org/api/idtoken"} {
			assert.Equal(t, want, strings.Contains(string(out), library+"\n"), "%s with the tag %q", library, tags)
		}
	}
}

// Each rule has to find a breach that was made up for it, and to let pass what
// stands nearest to it.
func TestRulesFindABreach(t *testing.T) {
	t.Parallel()
	cases := []struct {
		rule     string
		importer string
		breaks   []string
		keeps    []string
	}{
		{
			rule: "core stands alone", importer: "core",
			breaks: []string{
				module + "/adapters/http", module + "/cmd/duly", module + "/core/redisstore", "net/http", "net/http/httptest",
				"github.com/redis/go-redis/v9", "github.com/aws/aws-lambda-go/events", "cloud.google.com/go/pubsub",
			},
			keeps: []string{"net/url", "github.com/google/uuid", module + "/core/schedule"},
		},
		{
			rule: "the rooms of core stand on one another", importer: "core",
			breaks: []string{module + "/core/storetest"},
			keeps:  []string{module + "/core/schedule", module + "/core/store", module + "/core/internal/record", module + "/core/operate", "sync"},
		},
		{
			rule: "the rooms of core stand on one another", importer: "core/inspect",
			breaks: []string{module + "/core", module + "/core/operate"},
			keeps:  []string{module + "/core/model", module + "/core/internal/base"},
		},
		{
			rule: "the contract of stores imports its own subjects alone", importer: "core/store",
			breaks: []string{module + "/core", module + "/core/schedule", module + "/core/store/output"},
			keeps:  []string{"time", module + "/core/store/feed"},
		},
		{
			rule: "the contract of stores imports its own subjects alone", importer: "core/store/feed",
			breaks: []string{module + "/core/store", module + "/core/schedule"},
			keeps:  []string{"time"},
		},
		{
			rule: "schedule imports nothing of ours", importer: "core/schedule",
			breaks: []string{module + "/core", module},
			keeps:  []string{"time", "github.com/adhocore/gronx"},
		},
		{
			rule: "phrases import schedule alone", importer: "core/schedule/phrase",
			breaks: []string{module + "/core", module + "/core/model"},
			keeps:  []string{"time", module + "/core/schedule"},
		},
		{
			rule: "stores import the contract alone", importer: "core/memstore",
			breaks: []string{module + "/core", module + "/core/redisstore", module + "/core/schedule", module + "/core/filestore", module + "/adapters/daemon"},
			keeps:  []string{module + "/core/store", module + "/core/store/image", module + "/core/memstore/internal/heap"},
		},
		{
			rule: "stores import the contract alone", importer: "core/filestore",
			breaks: []string{module + "/core", module + "/core/redisstore"},
			keeps:  []string{module + "/core/store", module + "/core/memstore"},
		},
		{
			rule: "the rooms of the store on Redis stand on one another", importer: "core/redisstore/internal/call",
			breaks: []string{module + "/core/redisstore"},
			keeps:  []string{module + "/core/redisstore/internal/layout", module + "/core/store"},
		},
		{
			rule: "the rooms of the store on Redis stand on one another", importer: "core/filestore",
			breaks: []string{module + "/core/redisstore/internal/layout"},
			keeps:  []string{module + "/core/memstore"},
		},
		{
			rule: "adapters import core alone", importer: "adapters/lambda",
			breaks: []string{module + "/adapters/http", module + "/core/memstore", module + "/adapters/lambdax"},
			keeps:  []string{module + "/core", module + "/adapters/internal/trigger", "net/http", "github.com/aws/aws-lambda-go/events"},
		},
		{
			rule: "adapters import core alone", importer: "adapters/alarm/webhook",
			breaks: []string{module + "/adapters/alarm/qstash", module + "/internal/aws", module + "/handlers/webhook"},
			keeps:  []string{module + "/adapters/internal/apicall", module + "/internal/standardwebhooks"},
		},
		{
			rule: "adapters import core alone", importer: "adapters/http/rpc",
			breaks: []string{module + "/adapters/console", module + "/internal/contract"},
			keeps:  []string{module + "/adapters/http/operation", module + "/adapters/http"},
		},
		{
			rule: "adapters import core alone", importer: "adapters/alarm/sqs",
			breaks: []string{module + "/adapters/lambda", module + "/internal/standardwebhooks"},
			keeps:  []string{module + "/adapters/internal/apicall", module + "/internal/aws"},
		},
		{
			rule: "steps import core alone", importer: "steps",
			breaks: []string{module + "/core/memstore", module + "/adapters/daemon", module + "/handlers/exec"},
			keeps:  []string{module + "/core", "context"},
		},
		{
			rule: "handlers import core alone", importer: "handlers/webhook",
			breaks: []string{module + "/core/memstore", module + "/adapters/http", module + "/handlers/exec", module + "/core/schedule"},
			keeps:  []string{module + "/core", module + "/internal/contract", module + "/internal/aws", "net/http"},
		},
		{
			rule: "only programs that name a vendor link its library", importer: "host",
			breaks: []string{"github.com/aws/aws-sdk-go-v2/service/lambda", "google.golang.org/api/idtoken", "cloud.google.com/go/auth"},
			keeps:  []string{"github.com/aws/aws-lambda-go/events", module + "/internal/contract"},
		},
		{
			rule: "functions start no programs", importer: "sam",
			breaks: []string{"os/exec", module + "/handlers/exec"},
			keeps:  []string{"os", module + "/handlers/webhook"},
		},
		{
			rule: "only mains join adapters and stores", importer: "internal/wiring",
			breaks: []string{module + "/adapters/daemon", module + "/core/redisstore"},
			keeps:  []string{module + "/core"},
		},
		{
			rule: "a command is the commands of the program", importer: "cmd/duly",
			breaks: []string{module + "/core", module + "/internal/dulyfile", module + "/adapters/daemon"},
			keeps:  []string{module + "/internal/cli", "os"},
		},
		{
			rule: "the file knows neither the command line nor a host", importer: "internal/dulyfile",
			breaks: []string{module + "/internal/cli", module + "/adapters/http", "github.com/spf13/cobra"},
			keeps:  []string{module + "/core/memstore", module + "/handlers/exec", module + "/adapters/alarm/sqs", "go.yaml.in/yaml/v3"},
		},
		{
			rule: "the rooms of the command line stand on one another", importer: "internal/cli/command",
			breaks: []string{module + "/internal/cli", module + "/internal/cli/due", module + "/internal/cli/events", module + "/internal/cli/reference"},
			keeps:  []string{module + "/internal/cli/storage", module + "/internal/cli/exit", module + "/internal/dulyfile"},
		},
		{
			rule: "the program is no library", importer: "adapters/daemon",
			breaks: []string{module + "/internal/cli", module + "/internal/dulyfile", "github.com/spf13/pflag"},
			keeps:  []string{module + "/core"},
		},
		{
			rule: "suites are for tests", importer: "internal/cli",
			breaks: []string{module + "/core/storetest", module + "/adapters/adaptertest", module + "/internal/runtimeapi", module + "/internal/proof/sim/world", "testing"},
			keeps:  []string{module + "/core/memstore", module + "/adapters/daemon"},
		},
		{
			rule: "dulytest is for users' tests", importer: "internal/cli",
			breaks: []string{module + "/dulytest"},
			keeps:  []string{module + "/core/memstore"},
		},
		{
			rule: "dulytest brings core and the store in memory", importer: "dulytest",
			breaks: []string{
				module + "/core/storetest", module + "/core/redisstore", module + "/handlers/exec", module + "/adapters/http",
				"github.com/stretchr/testify/assert", "net/http",
			},
			keeps: []string{module + "/core", module + "/core/store", module + "/core/memstore", module + "/core/storetest/spy", "testing"},
		},
		{
			rule: "the Lambda runtime loop is for functions", importer: "adapters/lambda",
			breaks: []string{"github.com/aws/aws-lambda-go/lambda"},
			keeps:  []string{"github.com/aws/aws-lambda-go/lambdacontext"},
		},
		{
			rule: "only programs that are scraped link the metrics", importer: "adapters/http",
			breaks: []string{"github.com/prometheus/client_golang/prometheus"},
			keeps:  []string{"net/http", module + "/core"},
		},
		{
			rule: "only programs that are traced link OpenTelemetry", importer: "adapters/http",
			breaks: []string{"go.opentelemetry.io/otel/trace"},
			keeps:  []string{"net/http", module + "/core"},
		},
		{
			rule: "only programs that are traced link OpenTelemetry", importer: "adapters/otel",
			keeps: []string{"go.opentelemetry.io/otel/trace"},
		},
		{
			rule: "only programs that speak gRPC link it", importer: "adapters/http",
			breaks: []string{"connectrpc.com/connect"},
			keeps:  []string{"net/http", module + "/core"},
		},
		{
			rule: "only programs that models call link their protocol", importer: "adapters/http",
			breaks: []string{"github.com/modelcontextprotocol/go-sdk/mcp"},
			keeps:  []string{"net/http", module + "/core"},
		},
		{
			rule: "only programs that people look at link the console", importer: "adapters/lambda",
			breaks: []string{module + "/adapters/console"},
			keeps:  []string{module + "/core"},
		},
		{
			rule: "the Lambda runtime loop is for functions", importer: "examples/cloud-run",
			breaks: []string{"github.com/aws/aws-lambda-go/lambda"},
		},
		{
			rule: "the Lambda runtime loop is for functions", importer: "internal/runtimeapi",
			breaks: []string{"github.com/aws/aws-lambda-go/lambda"},
		},
		{
			rule: "the Lambda runtime loop is for functions", importer: "examples/lambda",
			keeps: []string{"github.com/aws/aws-lambda-go/lambda"},
		},
		{
			rule: "the functions framework is the examples'", importer: "adapters/gcf",
			breaks: []string{"github.com/GoogleCloudPlatform/functions-framework-go/functions"},
			keeps:  []string{"net/http"},
		},
	}
	var tried []string
	for _, c := range cases {
		tried = append(tried, c.rule)
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			at := slices.IndexFunc(rules, func(r rule) bool { return r.name == c.rule })
			require.GreaterOrEqual(t, at, 0, "no such rule")
			pkg := goPackage{ImportPath: module + "/" + c.importer, Imports: slices.Concat(c.breaks, c.keeps)}
			assert.ElementsMatch(t, c.breaks, rules[at].breaches(pkg))
		})
	}
	for _, r := range rules {
		assert.Contains(t, tried, r.name, "a rule without a breach made up for it")
	}
}

// What a rule about core forbids does not become allowed by a detour.
func TestATransitiveRuleSeesDetours(t *testing.T) {
	t.Parallel()
	pkg := goPackage{
		ImportPath: module + "/core",
		Imports:    []string{"example.com/friendly"},
		Deps:       []string{"example.com/friendly", "net/http"},
	}
	assert.Equal(t, []string{"net/http"}, rules[0].breaches(pkg))
}

// deps.txt makes each module that duly is built from a line that somebody
// reviewed. `make generate` writes it.
func TestDependenciesAreListed(t *testing.T) {
	t.Parallel()
	listed := dependencies(t)
	if *update {
		require.NoError(t, os.WriteFile("deps.txt", []byte(listed), 0o644))
	}
	want, err := os.ReadFile("deps.txt")
	require.NoError(t, err)
	assert.Equal(t, string(want), listed,
		"the modules in use have changed: run make generate, and give each new one its reason in docs/decisions")
}

// dependencies are the modules that the packages built for Linux come from, one
// a line, sorted. The platform is fixed so that every machine gets one list.
func dependencies(t *testing.T) string {
	t.Helper()
	out := goList(t, "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", "./...")
	paths := strings.Fields(string(out))
	slices.Sort(paths)
	var text strings.Builder
	for _, path := range slices.Compact(paths) {
		text.WriteString(path + "\n")
	}
	return text.String()
}

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(goList(t, "-json=ImportPath,Imports,Deps", "./...")))
	var packages []goPackage
	for {
		var pkg goPackage
		err := decoder.Decode(&pkg)
		if errors.Is(err, io.EOF) {
			return packages
		}
		require.NoError(t, err)
		packages = append(packages, pkg)
	}
}

func goList(t *testing.T, args ...string) []byte {
	t.Helper()
	readFolders(t)
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	return out
}

// readFolders reads each folder of the module, which tells `go test` that the
// result depends on the files in it: what go list reads it does not see, and
// without this a change of imports would meet a cached "ok".
func readFolders(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && path != "." && strings.HasPrefix(entry.Name(), ".") {
			return fs.SkipDir
		}
		return err
	})
	require.NoError(t, err)
}

// short is the path within the module, or the whole path of anything else.
func short(path string) string { return strings.TrimPrefix(path, module+"/") }

// ours says whether a short path is of this module: in no other do paths begin
// with one of these.
func ours(path string) bool {
	return path == module || under("core", "adapters", "handlers", "host", "steps", "cmd", "sam", "examples", "internal", "dulytest")(path)
}

// signs reports whether a package takes a signature from where it is made for all: that is arithmetic, and knows no host.
func signs(importer, imported string) bool {
	return is("handlers/webhook", "adapters/alarm/webhook")(importer) && imported == "internal/standardwebhooks" ||
		is("handlers/webhook", "adapters/alarm/sqs")(importer) && imported == "internal/aws" || is("handlers/lambda", "handlers/sqs")(importer) && imported == "internal/aws/sdk"
}

// vendor reports whether a package is a handler by a vendor's library.
var vendor = is("handlers/lambda", "handlers/sqs", "handlers/pubsub", "handlers/cloudrun")

// says reports whether a package reads what programs and workers say about their runs, or speaks another protocol for calls of the API.
func says(importer, imported string) bool {
	return importer == "adapters/http" && imported == "internal/contract" || importer == "adapters/http/rpc" && imported == "adapters/http/operation"
}

func store(path string) bool {
	return under("core/memstore", "core/redisstore", "core/filestore")(path)
}

// journals is true for the one store that is another one and a journal of it.
func journals(importer, imported string) bool {
	return importer == "core/filestore" && imported == "core/memstore"
}

// testSupport is code that is built for tests only, without being in _test files.
func testSupport(path string) bool {
	return is("core/storetest", "core/storetest/spy", "core/storetest/given", "core/storetest/whole", "core/storetest/beside", "core/storetest/equal", "dulytest", "adapters/adaptertest", "internal/redistest", "internal/runtimeapi",
		"internal/verify", "internal/proof/sim", "internal/proof/sim/draw", "internal/proof/sim/stores", "internal/proof/sim/world",
		"internal/proof/sim/shrink", "internal/proof/sim/mutants")(path)
}

func is(paths ...string) func(string) bool {
	return func(path string) bool { return slices.Contains(paths, path) }
}

func under(folders ...string) func(string) bool {
	return func(path string) bool {
		return slices.ContainsFunc(folders, func(folder string) bool { return within(folder, path) })
	}
}

func within(folder, path string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}
