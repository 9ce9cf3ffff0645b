package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// schemas are those of SAM and of CloudFormation's resources.
type schemas struct {
	function *jsonschema.Schema // AWS::Serverless::Function
	types    map[string]*jsonschema.Schema
	readOnly map[string][]string // attributes, by type
}

// loadSchemas reads the schemas beside the repository; nil if they are not there.
func loadSchemas(t *testing.T) *schemas {
	t.Helper()
	folder := filepath.Join("..", "..", "shared", "sam-schema")
	if _, err := os.Stat(folder); err != nil {
		return nil
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7)
	c.UseRegexpEngine(func(pattern string) (jsonschema.Regexp, error) {
		if re, err := regexp.Compile(pattern); err == nil {
			return (*goRegexp)(re), nil
		}
		return (*goRegexp)(regexp.MustCompile("")), nil // what Go cannot read is let pass
	})
	add := func(file, name string) dict {
		f, err := os.Open(file)
		require.NoError(t, err)
		defer f.Close()
		doc, err := jsonschema.UnmarshalJSON(f)
		require.NoError(t, err, file)
		if kind, ok := doc.(dict)["typeName"]; ok && kind != "" {
			delete(doc.(dict), "$schema") // of CloudFormation's own: an extension of draft 7
		}
		require.NoError(t, c.AddResource(name, doc))
		return doc.(dict)
	}
	add(filepath.Join(folder, "sam.schema.json"), "https://duly.test/sam")
	s := &schemas{types: map[string]*jsonschema.Schema{}, readOnly: map[string][]string{}}
	var err error
	s.function, err = c.Compile("https://duly.test/sam#/definitions/samtranslator__internal__schema_source__aws_serverless_function__Resource")
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(folder, "cfn", "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 9)
	for _, file := range files {
		url := "https://duly.test/" + filepath.Base(file)
		doc := add(file, url)
		name := doc["typeName"].(string)
		s.types[name], err = c.Compile(url)
		require.NoError(t, err, file)
		list, _ := doc["readOnlyProperties"].([]any)
		for _, p := range list {
			s.readOnly[name] = append(s.readOnly[name], strings.TrimPrefix(p.(string), "/properties/"))
		}
	}
	return s
}

type goRegexp regexp.Regexp

func (re *goRegexp) MatchString(s string) bool { return (*regexp.Regexp)(re).MatchString(s) }
func (re *goRegexp) String() string            { return (*regexp.Regexp)(re).String() }

// findings are what the schemas find wrong, with conditions that hold and with ones that do not.
func (s *schemas) findings(template dict) []string {
	var found []string
	for _, yes := range []bool{true, false} {
		r := resolver{template, yes}
		for name, resource := range dictAt(template, "Resources") {
			resolved := dictAt(dict{"": r.resolve(resource)}, "")
			if given := at(resource, "Properties", "DeploymentPreference"); given != nil { // which names alarms by reference
				dictAt(resolved, "Properties")["DeploymentPreference"] = given
			}
			found = append(found, s.resource(name, resolved)...)
		}
	}
	return found
}

func (s *schemas) resource(name string, resource dict) []string {
	kind, _ := resource["Type"].(string)
	properties := dictAt(resource, "Properties")
	if kind != "AWS::Serverless::Function" {
		if s.types[kind] == nil {
			return nil // rules know which types there are
		}
		return invalid(name, s.types[kind], properties)
	}
	found := invalid(name, s.function, resource)
	for what, made := range transformed(properties) {
		found = append(found, invalid(name+" as "+what, s.types[what[:strings.LastIndexByte(what, ' ')]], made)...)
	}
	return found
}

// transformed are the resources that SAM makes of a function: each as its type, and a number.
func transformed(function dict) map[string]dict {
	with := func(from, more dict, without ...string) dict {
		d := maps.Clone(from)
		maps.Copy(d, more)
		for _, name := range without {
			delete(d, name)
		}
		return d
	}
	lambda := with(function, dict{"Role": "arn:aws:iam::111122223333:role/sample", "Code": dict{"S3Bucket": "sample", "S3Key": "sample"}},
		"CodeUri", "Policies", "FunctionUrlConfig", "EventInvokeConfig", "Events",
		"AutoPublishAlias", "AutoPublishAliasAllProperties", "DeploymentPreference")
	made := map[string]dict{"AWS::Lambda::Function 0": lambda}
	if url := dictAt(function, "FunctionUrlConfig"); url != nil {
		made["AWS::Lambda::Url 0"] = with(url, dict{"TargetFunctionArn": "sample"})
	}
	if config := dictAt(function, "EventInvokeConfig"); config != nil {
		made["AWS::Lambda::EventInvokeConfig 0"] = with(config, dict{"FunctionName": "sample", "Qualifier": "$LATEST"})
	}
	for i, name := range keys(dictAt(function, "Events")) {
		event := dictAt(function, "Events", name)
		p := dictAt(event, "Properties")
		switch event["Type"] {
		case "SQS":
			made[fmt.Sprintf("AWS::Lambda::EventSourceMapping %d", i)] = with(p, dict{"FunctionName": "sample", "EventSourceArn": p["Queue"]}, "Queue")
		case "ScheduleV2":
			target := dict{"Arn": "arn:aws:lambda:eu-north-1:111122223333:function:sample", "RoleArn": "arn:aws:iam::111122223333:role/sample"}
			for _, name := range []string{"Input", "RetryPolicy", "DeadLetterConfig"} {
				if v, ok := p[name]; ok {
					target[name] = v
				}
			}
			made[fmt.Sprintf("AWS::Scheduler::Schedule %d", i)] = with(p, dict{"Target": target}, "Input", "RetryPolicy", "DeadLetterConfig", "OmitName")
		}
	}
	return made
}

// invalid are the findings of one schema.
func invalid(name string, schema *jsonschema.Schema, value dict) []string {
	data, err := json.Marshal(value)
	if err != nil {
		return []string{name + ": " + err.Error()}
	}
	instance, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
	if err != nil {
		return []string{name + ": " + err.Error()}
	}
	var problem *jsonschema.ValidationError
	if err := schema.Validate(instance); errors.As(err, &problem) {
		return []string{name + ": schema: " + strings.ReplaceAll(problem.Error(), "\n", " ")}
	}
	return nil
}
