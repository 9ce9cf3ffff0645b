package main_test

import (
	"fmt"
	"slices"
	"strings"
)

// What the function may do, and which parameters contradict each other.

// managed are the policies of AWS that the role may have, and only in a VPC: each allows more than this stack is about.
const managed = "AWSLambdaVPCAccessExecutionRole"

// rightsAreFew sees that the role of the function is ours, and that no statement of it is about more than one thing by name.
func rightsAreFew(t dict) (found []string) {
	f := dictAt(t, "Resources", "DulyFunction", "Properties")
	if pair, _ := at(f, "Role", "Fn::GetAtt").([]any); len(pair) != 2 || pair[0] != "FunctionRole" || f["Policies"] != nil {
		found = append(found, "DulyFunction: its role is SAM's, which has rights on everything")
	}
	for name, event := range dictAt(f, "Events") {
		if at(event, "Type") == "SQS" {
			found = append(found, name+": SAM lets a function with such an event read every queue")
		}
	}
	role := dictAt(t, "Resources", "FunctionRole", "Properties")
	if list, ok := (resolver{t, false}).resolve(role["ManagedPolicyArns"]).(noValue); !ok {
		found = append(found, fmt.Sprintf("FunctionRole: has policies of AWS without a VPC: %v", list))
	}
	if text := fmt.Sprint(resolver{t, true}.resolve(role["ManagedPolicyArns"])); !strings.HasSuffix(text, "/"+managed+"]") {
		found = append(found, "FunctionRole: in a VPC has "+text)
	}
	return slices.Concat(found, rightsByName(t, "FunctionRole"), rightsByName(t, "AlarmRole"))
}

// ownSchedules are all schedules of the group that the stack has made for them: their names are times.
const ownSchedules = ":schedule/${AlarmSchedules}/duly-*"

// rightsByName sees that no right of a role is about more than it names.
func rightsByName(t dict, name string) (found []string) {
	policies, _ := at(t, "Resources", name, "Properties", "Policies").([]any)
	for _, policy := range policies {
		walk(policy, func(d dict) {
			if d["Action"] == nil {
				return
			}
			for _, part := range []string{"Action", "Resource"} {
				if text := strings.Replace(fmt.Sprint(d[part]), ownSchedules, "", 1); d[part] == nil || strings.Contains(text, "*") {
					found = append(found, fmt.Sprintf("%s: %s %s is not one by name", name, part, text))
				}
			}
			if d["Action"] == "iam:PassRole" && at(d, "Condition", "StringEquals", "iam:PassedToService") == nil {
				found = append(found, name+": iam:PassRole is for every service")
			}
		})
	}
	return found
}

// contradictionsAreRefused tries the rules with parameters that contradict each other, and with some that do not.
func contradictionsAreRefused(t dict) (found []string) {
	const vpc, subnets = "vpc-1", "subnet-1"
	for _, c := range []struct {
		refused bool
		with    dict
	}{
		{false, dict{"RedisSecret": "x"}},
		{false, dict{"RedisParameter": "x", "VpcId": vpc, "SubnetIds": subnets}},
		{false, dict{"RedisParameter": "x", "ElastiCache": "replicationgroup:x", "ElastiCacheUser": "x"}},
		{false, dict{"RedisSecret": "x", "WebhookSecret": "x", "Webhooks": `{"a":"b"}`}},
		{true, dict{}},
		{true, dict{"RedisSecret": "x", "RedisParameter": "x"}},
		{true, dict{"RedisSecret": "x", "VpcId": vpc}},
		{true, dict{"RedisSecret": "x", "SubnetIds": subnets}},
		{true, dict{"RedisParameter": "x", "ElastiCache": "replicationgroup:x"}},
		{true, dict{"RedisParameter": "x", "ElastiCacheUser": "x"}},
		{true, dict{"RedisSecret": "x", "ElastiCache": "replicationgroup:x", "ElastiCacheUser": "x"}},
		{true, dict{"RedisSecret": "x", "WebhookSecret": "x"}},
	} {
		if refused := refusing(t, c.with); len(refused) > 0 != c.refused {
			found = append(found, fmt.Sprintf("Rules: %v is refused by %q", c.with, refused))
		}
	}
	return found
}

// refusing are the rules that refuse some parameters; the others have their defaults.
func refusing(t, with dict) (names []string) {
	value := func(name string) string {
		if v, given := with[name]; given {
			return fmt.Sprint(v)
		}
		return fmt.Sprint(at(t, "Parameters", name, "Default"))
	}
	for name, rule := range dictAt(t, "Rules") {
		if when := at(rule, "RuleCondition"); when != nil && holds(when, value) != "true" {
			continue
		}
		list, _ := at(rule, "Assertions").([]any)
		for _, assertion := range list {
			if holds(at(assertion, "Assert"), value) != "true" {
				names = append(names, name)
			}
		}
	}
	return names
}

// holds works out what a rule may be made of. A list of subnets is one text here.
func holds(v any, value func(name string) string) string {
	d, ok := v.(dict)
	if !ok {
		return fmt.Sprint(v)
	}
	name := keys(d)[0]
	args, _ := d[name].([]any)
	var each []string
	for _, arg := range args {
		each = append(each, holds(arg, value))
	}
	switch name {
	case "Ref":
		return value(fmt.Sprint(d[name]))
	case "Fn::Equals", "Fn::EachMemberEquals":
		return fmt.Sprint(each[0] == each[1])
	case "Fn::Not":
		return fmt.Sprint(each[0] == "false")
	case "Fn::And":
		return fmt.Sprint(!slices.Contains(each, "false"))
	case "Fn::Or":
		return fmt.Sprint(slices.Contains(each, "true"))
	default:
		return "rules have no " + name
	}
}

// alarmIsReached sees that a function in a VPC has a way to each service that it books alarms with.
func alarmIsReached(t dict) (found []string) {
	ways := map[string]bool{}
	for name, r := range dictAt(t, "Resources") {
		if at(r, "Type") != "AWS::EC2::VPCEndpoint" {
			continue
		}
		service := fmt.Sprint(at(r, "Properties", "ServiceName"))
		ways[strings.TrimSuffix(service[strings.LastIndexByte(service, '.')+1:], "]")] = true
		if at(r, "Condition") != "HasEndpoints" {
			found = append(found, name+": is there without HasEndpoints")
		}
		if at(r, "Properties", "PrivateDnsEnabled") != true {
			found = append(found, name+": has not the name that the function calls")
		}
	}
	for _, service := range []string{"sqs", "scheduler"} {
		if !ways[service] {
			found = append(found, "no endpoint of "+service)
		}
	}
	return found
}
