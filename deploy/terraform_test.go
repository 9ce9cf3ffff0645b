package deploy_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var modules = []string{"terraform/lambda", "terraform/cloud-run"}

// sources are the files of a module by their names.
func sources(t *testing.T, module string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(module + "/*.tf")
	require.NoError(t, err)
	out := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		out[filepath.Base(path)] = string(text)
	}
	require.Subset(t, slices.Collect(maps.Keys(out)), []string{"main.tf", "variables.tf", "outputs.tf"})
	return out
}

// naming is what a module declares and what it uses, as var.x, local.x, data.type.name and type.name.
type naming struct {
	declared, used map[string]bool
	findings       []string
}

// check reads a module without its providers, and returns what is wrong with it.
func check(files map[string]string) []string {
	n := naming{declared: map[string]bool{}, used: map[string]bool{}}
	for file, text := range files {
		parsed, faults := hclsyntax.ParseConfig([]byte(text), file, hcl.InitialPos)
		if faults.HasErrors() {
			return []string{faults.Error()}
		}
		for _, block := range parsed.Body.(*hclsyntax.Body).Blocks {
			n.declare(block)
			// The condition of a variable is about itself, and is no use of it.
			if block.Type != "variable" {
				n.use(block.Body, nil)
			}
		}
	}
	for name := range n.used {
		if !n.declared[name] {
			n.findings = append(n.findings, name+" is used and not declared")
		}
	}
	for name := range n.declared {
		if strings.HasPrefix(name, "var.") && !n.used[name] {
			n.findings = append(n.findings, name+" is declared and not used")
		}
	}
	return n.findings
}

// declare notes what a block at the top of a file gives a name to.
func (n *naming) declare(b *hclsyntax.Block) {
	switch b.Type {
	case "resource":
		n.declared[strings.Join(b.Labels, ".")] = true
	case "data":
		n.declared["data."+strings.Join(b.Labels, ".")] = true
		if strings.Contains(b.Labels[0], "_version") {
			n.findings = append(n.findings, b.Labels[0]+" reads a secret into the state")
		}
	case "locals":
		for name := range b.Body.Attributes {
			n.declared["local."+name] = true
		}
	case "variable", "output":
		if b.Type == "variable" {
			n.declared["var."+b.Labels[0]] = true
		}
		if b.Body.Attributes["description"] == nil {
			n.findings = append(n.findings, b.Labels[0]+" has no description")
		}
	}
}

// own are the roots of names that need no declaration.
var own = []string{"each", "count", "self", "path", "terraform"}

// use notes the names that the expressions of a body have, without those of types and of what a dynamic block gives.
func (n *naming) use(body *hclsyntax.Body, inner []string) {
	for _, a := range body.Attributes {
		for _, v := range a.Expr.Variables() {
			var parts []string
			for _, step := range v {
				switch step := step.(type) {
				case hcl.TraverseRoot:
					parts = append(parts, step.Name)
				case hcl.TraverseAttr:
					parts = append(parts, step.Name)
				}
			}
			want := 2
			if parts[0] == "data" {
				want = 3
			}
			if len(parts) < want || slices.Contains(own, parts[0]) || slices.Contains(inner, parts[0]) {
				continue
			}
			n.used[strings.Join(parts[:want], ".")] = true
		}
	}
	for _, b := range body.Blocks {
		given := inner
		if b.Type == "dynamic" {
			given = append(slices.Clone(inner), b.Labels[0])
		}
		n.use(b.Body, given)
	}
}

// Each name that a module uses is declared, each of its variables is used and described, and none of its sources reads a secret.
func TestTerraformModulesAreWhole(t *testing.T) {
	t.Parallel()
	for _, module := range modules {
		assert.Empty(t, check(sources(t, module)), module)
	}
	for _, fault := range []struct{ module, file, old, wrong, finding string }{
		{modules[0], "main.tf", "var.memory_size", "var.memory", "var.memory is used and not declared"},
		{modules[0], "main.tf", "local.in_vpc ?", "local.vpc ?", "local.vpc is used and not declared"},
		{modules[0], "main.tf", "aws_iam_role.schedule.arn", "aws_iam_role.tick.arn", "aws_iam_role.tick is used and not declared"},
		{modules[0], "main.tf", "data.aws_partition.current.", "data.aws_partition.this.", "data.aws_partition.this is used and not declared"},
		{modules[0], "main.tf", `"aws_secretsmanager_secret" "redis"`, `"aws_secretsmanager_secret_version" "redis"`, "aws_secretsmanager_secret_version reads a secret into the state"},
		{modules[1], "main.tf", "= var.max_instances", "= 5", "var.max_instances is declared and not used"},
		{modules[1], "outputs.tf", "description =", "# description =", "has no description"},
		{modules[1], "main.tf", "template {", "template", "Argument or block definition required"},
	} {
		files := sources(t, fault.module)
		require.Contains(t, files[fault.file], fault.old)
		files[fault.file] = strings.Replace(files[fault.file], fault.old, fault.wrong, 1)
		assert.Contains(t, strings.Join(check(files), "\n"), fault.finding, fault.wrong)
	}
}

// The function gets its settings and its tick as that of sam/ does, and both services have the same time.
func TestTerraformSetsWhatTheProgramsRead(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../sam/template.yaml")
	require.NoError(t, err)
	sam, function := string(text), sources(t, modules[0])["main.tf"]
	settings := regexp.MustCompile(`DULY_\w+`)
	for _, name := range settings.FindAllString(function, -1) {
		assert.Contains(t, sam, "          "+name+": ", "a setting that the function does not read")
	}
	tick := regexp.MustCompile(`input = "(.*)"\n`).FindStringSubmatch(function)
	require.NotNil(t, tick)
	assert.Contains(t, sam, "\n              "+strings.ReplaceAll(tick[1], `\"`, `"`)+"\n")
	assert.Contains(t, sam, "\n      Timeout: 60\n")
	assert.Regexp(t, `\n  timeout +=\s60\n`, function)
	service := sources(t, modules[1])["main.tf"]
	assert.Regexp(t, `\n    timeout +=\s"60s"\n`, service)
	assert.Regexp(t, `\n  attempt_deadline +=\s"60s"\n`, service)
	assert.Equal(t, []string{"DULY_REDIS_URL", "DULY_PREFIX"}, settings.FindAllString(service, -1))
}

// Each README has all variables and outputs of its module, and no others.
func TestTerraformModulesAreDescribed(t *testing.T) {
	t.Parallel()
	for _, module := range modules {
		readme, err := os.ReadFile(module + "/README.md")
		require.NoError(t, err)
		var described, declared []string
		for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(string(readme), -1) {
			described = append(described, row[1])
		}
		files := sources(t, module)
		for _, b := range regexp.MustCompile(`(?m)^(?:variable|output) "(\w+)"`).FindAllStringSubmatch(files["variables.tf"]+files["outputs.tf"], -1) {
			declared = append(declared, b[1])
		}
		assert.Equal(t, declared, described, module)
	}
}

// Terraform itself formats and validates them, where it is installed and gets the providers.
func TestTerraformValidates(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("terraform")
	if err != nil {
		t.Skip("terraform is not installed: the modules were only parsed")
	}
	for _, module := range modules {
		t.Run(filepath.Base(module), func(t *testing.T) {
			t.Parallel()
			fresh := t.TempDir()
			require.NoError(t, os.CopyFS(fresh, os.DirFS(module)))
			out, err := terraform(t, program, fresh, "fmt", "-check", "-diff")
			require.NoError(t, err, "run terraform fmt: %s", out)
			if out, err = terraform(t, program, fresh, "init", "-backend=false", "-input=false", "-no-color"); err != nil {
				if !strings.Contains(out, "registry.terraform.io") {
					t.Fatalf("init: %v: %s", err, out)
				}
				t.Skipf("no providers, so the modules were only parsed and formatted: %s", out)
			}
			out, err = terraform(t, program, fresh, "validate", "-no-color")
			require.NoError(t, err, out)
		})
	}
}

func terraform(t *testing.T, program, folder string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return fmt.Sprintf("registry.terraform.io did not bring the providers in time: %s", out), err
	}
	return string(out), err
}
