package main_test

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// dict is a mapping of the template, with CloudFormation's short forms (!Ref x) written out ({"Ref": "x"}).
type dict = map[string]any

// readTemplate reads a template as SAM does.
func readTemplate(text string) (dict, error) {
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		return nil, err
	}
	value, err := plain(root.Content[0])
	if err != nil {
		return nil, err
	}
	d, ok := value.(dict)
	if !ok {
		return nil, fmt.Errorf("the template is no mapping")
	}
	return d, nil
}

func plain(n *yaml.Node) (any, error) {
	if name, ok := strings.CutPrefix(n.Tag, "!"); ok && !strings.HasPrefix(name, "!") {
		untagged := *n
		untagged.Tag = ""
		value, err := plain(&untagged)
		if err != nil {
			return nil, err
		}
		switch name {
		case "Ref", "Condition":
			return dict{name: value}, nil
		case "GetAtt":
			resource, attribute, _ := strings.Cut(fmt.Sprint(value), ".")
			return dict{"Fn::GetAtt": []any{resource, attribute}}, nil
		default:
			return dict{"Fn::" + name: value}, nil
		}
	}
	switch n.Kind {
	case yaml.MappingNode:
		d := dict{}
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if _, twice := d[key]; twice {
				return nil, fmt.Errorf("line %d: %s stands twice", n.Content[i].Line, key)
			}
			value, err := plain(n.Content[i+1])
			if err != nil {
				return nil, err
			}
			d[key] = value
		}
		return d, nil
	case yaml.SequenceNode:
		list := []any{}
		for _, item := range n.Content {
			value, err := plain(item)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, nil
	default:
		return scalar(n)
	}
}

// scalar reads a value by YAML 1.1, in which off is false.
func scalar(n *yaml.Node) (any, error) {
	if n.Style == 0 {
		switch strings.ToLower(n.Value) {
		case "on", "yes", "true":
			return true, nil
		case "off", "no", "false":
			return false, nil
		}
	}
	var v any
	err := n.Decode(&v)
	return v, err
}

// at is what stands at a path of the tree; nil if nothing does.
func at(v any, path ...string) any {
	for _, name := range path {
		d, _ := v.(dict)
		v = d[name]
	}
	return v
}

func dictAt(v any, path ...string) dict {
	d, _ := at(v, path...).(dict)
	return d
}

// keys are the keys of a mapping, sorted.
func keys(d dict) []string {
	var names []string
	for name := range d {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// walk calls visit for each mapping of the tree.
func walk(v any, visit func(d dict)) {
	switch v := v.(type) {
	case dict:
		visit(v)
		for _, name := range keys(v) {
			walk(v[name], visit)
		}
	case []any:
		for _, item := range v {
			walk(item, visit)
		}
	}
}

// resolver puts samples where the template refers to something.
type resolver struct {
	template dict
	yes      bool // whether conditions hold
}

type noValue struct{}

func (r resolver) resolve(v any) any {
	switch v := v.(type) {
	case dict:
		if len(v) == 1 {
			if sample, ok := r.intrinsic(v); ok {
				return sample
			}
		}
		d := dict{}
		for name, item := range v {
			if value := r.resolve(item); value != (noValue{}) {
				d[name] = value
			}
		}
		return d
	case []any:
		list := []any{}
		for _, item := range v {
			if value := r.resolve(item); value != (noValue{}) {
				list = append(list, value)
			}
		}
		return list
	default:
		return v
	}
}

func (r resolver) intrinsic(d dict) (any, bool) {
	switch name := keys(d)[0]; name {
	case "Ref":
		return r.ref(fmt.Sprint(d[name])), true
	case "Fn::If":
		branches, _ := d[name].([]any)
		if len(branches) != 3 {
			return nil, false
		}
		if r.yes {
			return r.resolve(branches[1]), true
		}
		return r.resolve(branches[2]), true
	case "Fn::GetAtt":
		service := "lambda"
		if pair, ok := d[name].([]any); ok && at(r.template, "Resources", fmt.Sprint(pair[0]), "Type") == "AWS::SQS::Queue" {
			service = "sqs"
		}
		return "arn:aws:" + service + ":eu-north-1:111122223333:sample", true
	case "Fn::Sub":
		return d[name], true
	case "Fn::FindInMap":
		return d, true // SAM resolves it
	default:
		return nil, false
	}
}

func (r resolver) ref(name string) any {
	if name == "AWS::NoValue" {
		return noValue{}
	}
	parameter := dictAt(r.template, "Parameters", name)
	switch {
	case parameter == nil:
		return "sample"
	case parameter["Type"] == "CommaDelimitedList":
		return []any{"subnet-00000001", "subnet-00000002"}
	case parameter["Default"] == "" || parameter["Default"] == nil:
		return "sample"
	default:
		return parameter["Default"]
	}
}
