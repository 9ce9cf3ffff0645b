package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	lambdaadapter "github.com/seed-6f6f2c11/duly/adapters/lambda"
)

// attributes are what GetAtt may ask of a type.
var attributes = map[string][]string{
	"AWS::Serverless::Function":       {"Arn"},
	"AWS::IAM::Role":                  {"Arn", "RoleId"},
	"AWS::Lambda::EventSourceMapping": {"Id"},
	"AWS::Lambda::Permission":         {},
	"AWS::SQS::Queue":                 {"Arn", "QueueName", "QueueUrl"},
	"AWS::EC2::SecurityGroup":         {"GroupId", "VpcId"},
	"AWS::Scheduler::ScheduleGroup":   {"Arn"},
	"AWS::EC2::VPCEndpoint":           {"Id"},
	"AWS::CloudWatch::Alarm":          {"Arn"},
	"AWS::Logs::LogGroup":             {"Arn"},
	"AWS::Lambda::Url":                {"FunctionUrl", "FunctionArn"},
}

// rules are what no schema sees. Each returns its findings.
var templateRules = []func(t dict) []string{
	parametersMakeSense, referencesLead, everythingIsUsed, typesAreKnown, functionIsOurs, rightsAreFew, scheduleIsRight,
	ticksAreGivenUp, queueIsRight, secretsAreReferences, variablesAreRead, alarmsWatch, urlIsSigned,
	contradictionsAreRefused, queuesAreKept, deploymentIsStaged, alarmIsRight, alarmIsReached,
}

func rulesFindings(t dict) []string {
	var found []string
	for _, rule := range templateRules {
		found = append(found, rule(t)...)
	}
	return found
}

func parametersMakeSense(t dict) (found []string) {
	for name, p := range dictAt(t, "Parameters") {
		text := fmt.Sprint(at(p, "Default"))
		if pattern, ok := at(p, "AllowedPattern").(string); ok && !regexp.MustCompile(pattern).MatchString(text) {
			found = append(found, fmt.Sprintf("%s: the default %q does not match its pattern", name, text))
		}
		if values, ok := at(p, "AllowedValues").([]any); ok && !slices.ContainsFunc(values, func(v any) bool { return fmt.Sprint(v) == text }) {
			found = append(found, fmt.Sprintf("%s: the default %q is not allowed", name, text))
		}
		value, number := at(p, "Default").(int)
		least, _ := at(p, "MinValue").(int)
		most, bounded := at(p, "MaxValue").(int)
		if at(p, "Type") == "Number" && (!number || value < least || bounded && value > most) {
			found = append(found, fmt.Sprintf("%s: the default %q is out of bounds", name, text))
		}
	}
	listed := map[string]bool{}
	groups, _ := at(t, "Metadata", "AWS::CloudFormation::Interface", "ParameterGroups").([]any)
	for _, g := range groups {
		names, _ := at(g, "Parameters").([]any)
		for _, name := range names {
			listed[fmt.Sprint(name)] = true
		}
	}
	for name := range dictAt(t, "Parameters") {
		if !listed[name] {
			found = append(found, name+": is in no group of parameters")
		}
		delete(listed, name)
	}
	for name := range listed {
		found = append(found, name+": is in a group and no parameter")
	}
	return found
}

var subReference = regexp.MustCompile(`\$\{([^}!]+)\}`)

// references calls the functions with each name that the template refers to.
func references(t dict, ref func(name string), getAtt func(resource, attribute string), condition func(name string)) {
	walk(t, func(d dict) {
		if name, ok := d["Ref"].(string); ok && len(d) == 1 {
			ref(name)
		}
		if pair, ok := d["Fn::GetAtt"].([]any); ok {
			getAtt(fmt.Sprint(pair[0]), fmt.Sprint(pair[1]))
		}
		if text, ok := d["Fn::Sub"].(string); ok {
			subReferences(text, ref, getAtt)
		}
		if pair, ok := d["Fn::Sub"].([]any); ok {
			for _, m := range subReference.FindAllStringSubmatch(fmt.Sprint(pair[0]), -1) {
				if at(pair[1], m[1]) == nil {
					ref(m[1])
				}
			}
		}
		if path, ok := d["Fn::FindInMap"].([]any); ok {
			ref(fmt.Sprint(path[0]))
		}
		if branches, ok := d["Fn::If"].([]any); ok {
			condition(fmt.Sprint(branches[0]))
		}
		if name, ok := d["Condition"].(string); ok {
			condition(name)
		}
	})
}

// subReferences calls the functions with what a text refers to.
func subReferences(text string, ref func(name string), getAtt func(resource, attribute string)) {
	for _, m := range subReference.FindAllStringSubmatch(text, -1) {
		if resource, attribute, ok := strings.Cut(m[1], "."); ok {
			getAtt(resource, attribute)
		} else {
			ref(m[1])
		}
	}
}

func referencesLead(t dict) (found []string) {
	resources := dictAt(t, "Resources")
	references(t, func(name string) {
		name, alias := strings.CutSuffix(name, ".Alias") // which SAM makes
		known := dictAt(t, "Parameters", name) != nil || dictAt(t, "Mappings", name) != nil || resources[name] != nil
		if !known && !strings.HasPrefix(name, "AWS::") || alias && at(resources, name, "Properties", "AutoPublishAlias") == nil {
			found = append(found, name+": nothing has this name")
		}
	}, func(resource, attribute string) {
		kind, _ := at(resources, resource, "Type").(string)
		if function, ok := strings.CutSuffix(resource, "Url"); ok && at(resources, function, "Properties", "FunctionUrlConfig") != nil {
			kind = "AWS::Lambda::Url" // SAM makes it
		}
		if !slices.Contains(attributes[kind], attribute) {
			found = append(found, fmt.Sprintf("%s: has no attribute %q", resource, attribute))
		}
	}, func(name string) {
		if at(t, "Conditions", name) == nil {
			found = append(found, name+": no such condition")
		}
	})
	return found
}

func everythingIsUsed(t dict) (found []string) {
	used := map[string]bool{}
	use := func(name string) { used[name] = true }
	references(t, use, func(resource, _ string) { use(resource) }, use)
	for _, section := range []string{"Parameters", "Mappings", "Conditions"} {
		for name := range dictAt(t, section) {
			if !used[name] {
				found = append(found, name+": is not used")
			}
		}
	}
	return found
}

func typesAreKnown(t dict) (found []string) {
	for name, r := range dictAt(t, "Resources") {
		if kind := fmt.Sprint(at(r, "Type")); attributes[kind] == nil || kind == "AWS::Lambda::Url" && (name != "ApprovalsEntry" || at(r, "Condition") != "HasApprovals") {
			found = append(found, fmt.Sprintf("%s: the type %s is not one that this test knows", name, kind))
		}
	}
	return found
}

func functionIsOurs(t dict) (found []string) {
	f := dictAt(t, "Resources", "DulyFunction")
	for path, want := range map[string]any{
		"Metadata.BuildMethod": "makefile", "Properties.Runtime": "provided.al2023", "Properties.Handler": "bootstrap",
		"Properties.CodeUri": ".", "Type": "AWS::Serverless::Function",
	} {
		if got := at(f, strings.Split(path, ".")...); got != want {
			found = append(found, fmt.Sprintf("DulyFunction.%s: is %v, not %v", path, got, want))
		}
	}
	if list, _ := at(f, "Properties", "Architectures").([]any); len(list) != 1 || list[0] != "arm64" {
		found = append(found, "DulyFunction.Properties.Architectures: the Makefile builds for arm64")
	}
	makefile, err := os.ReadFile("Makefile")
	for name, r := range dictAt(t, "Resources") {
		if at(r, "Type") == "AWS::Serverless::Function" && (err != nil || !strings.Contains(string(makefile), "\nbuild-"+name+":")) {
			found = append(found, name+": the Makefile has no target build-"+name)
		}
	}
	return found
}

// queuesAreKept sees that no tasks are lost with a stack, or with a change of it.
func queuesAreKept(t dict) (found []string) {
	for name, r := range dictAt(t, "Resources") {
		if at(r, "Type") == "AWS::SQS::Queue" && !passing(dictAt(r, "Properties")) && (at(r, "DeletionPolicy") != "Retain" || at(r, "UpdateReplacePolicy") != "Retain") {
			found = append(found, name+": its messages go with the stack")
		}
	}
	return found
}

// passing reports whether what is in a queue is worth nothing after an hour: wake-ups, and no tasks.
func passing(queue dict) bool {
	kept, said := queue["MessageRetentionPeriod"].(int)
	return said && kept <= 3600
}

// alarmIsRight sees that wake-ups come again when they fail, that the tick is a watchdog beside them, and that nothing of it is there without Alarm.
func alarmIsRight(t dict) (found []string) {
	for _, name := range []string{"Alarms", "AlarmMapping", "AlarmSchedules", "AlarmRole"} {
		if at(t, "Resources", name, "Condition") != "HasAlarm" {
			found = append(found, name+": is there without Alarm")
		}
	}
	if at(t, "Resources", "AlarmMapping", "Properties", "FunctionResponseTypes") != nil {
		found = append(found, "AlarmMapping: a wake-up that failed counts as done, as the function names none")
	}
	tick := at(t, "Resources", "DulyFunction", "Properties", "Events", "Tick", "Properties", "ScheduleExpression")
	for on, want := range map[bool]string{true: "rate(15 minutes)", false: "rate(1 minute)"} {
		if rate := (resolver{t, on}).resolve(tick); rate != want {
			found = append(found, fmt.Sprintf("Tick: is %v and not %s", rate, want))
		}
	}
	return found
}

// deploymentIsStaged sees that a new version takes over as the parameter says, also if a parameter alone has changed.
func deploymentIsStaged(t dict) (found []string) {
	f := dictAt(t, "Resources", "DulyFunction", "Properties")
	if f["AutoPublishAlias"] == nil || f["AutoPublishAliasAllProperties"] != true {
		found = append(found, "DulyFunction: a changed parameter makes no version")
	}
	staged := dictAt(t, "Mappings", "Deployments")
	values, _ := at(t, "Parameters", "Deployment", "AllowedValues").([]any)
	for _, v := range values {
		if want := fmt.Sprint(v != "Direct"); at(staged, fmt.Sprint(v), "Staged") != want {
			found = append(found, fmt.Sprintf("Deployments: %v is not staged %s", v, want))
		}
	}
	if alarms, _ := at(f, "DeploymentPreference", "Alarms").([]any); len(alarms) == 0 {
		found = append(found, "DulyFunction: nothing stops a deployment that fails")
	}
	return found
}

var schedule = regexp.MustCompile(`^rate\((1 (minute|hour|day)|([2-9]|[1-9]\d+) (minutes|hours|days))\)$|^cron\(([^ ]+ ){5}[^ ]+\)$`)

func scheduleIsRight(t dict) (found []string) {
	tick := dictAt(t, "Resources", "DulyFunction", "Properties", "Events", "Tick")
	p := dictAt(dict{"": resolver{t, true}.resolve(at(tick, "Properties"))}, "")
	if tick["Type"] != "ScheduleV2" {
		found = append(found, "Tick: is no ScheduleV2")
	}
	for _, yes := range []bool{true, false} {
		if rate := fmt.Sprint((resolver{t, yes}).resolve(at(tick, "Properties", "ScheduleExpression"))); !schedule.MatchString(rate) {
			found = append(found, fmt.Sprintf("Tick: %q is no schedule", rate))
		}
	}
	if mode := at(p, "FlexibleTimeWindow", "Mode"); mode != "OFF" {
		found = append(found, fmt.Sprintf("Tick: the mode of the window is %v: quote \"OFF\"", mode))
	}
	if p["OmitName"] != true {
		found = append(found, "Tick: SAM names it, so that a second stack in the account fails")
	}
	if input, _ := p["Input"].(string); !json.Valid([]byte(input)) {
		found = append(found, "Tick: the input is no JSON")
	}
	return found
}

// ticksAreGivenUp sees that a tick that failed is left to the next one: AWS would repeat it a minute later at the earliest, and
// in the queue for lost messages it would only keep the alarm on.
func ticksAreGivenUp(t dict) (found []string) {
	f := dictAt(t, "Resources", "DulyFunction", "Properties")
	invoke, tick := dictAt(f, "EventInvokeConfig"), dictAt(f, "Events", "Tick", "Properties")
	for name, retries := range map[string]any{
		"EventInvokeConfig": at(invoke, "MaximumRetryAttempts"), "Tick": at(tick, "RetryPolicy", "MaximumRetryAttempts"),
	} {
		if retries != 0 {
			found = append(found, name+": a tick is repeated")
		}
	}
	if at(invoke, "DestinationConfig") != nil || at(tick, "DeadLetterConfig") != nil {
		found = append(found, "Tick: is kept with the lost messages")
	}
	return found
}

func queueIsRight(t dict) (found []string) {
	timeout, _ := at(t, "Resources", "DulyFunction", "Properties", "Timeout").(int)
	for name, mapping := range dictAt(t, "Resources") {
		if at(mapping, "Type") != "AWS::Lambda::EventSourceMapping" {
			continue
		}
		if at(mapping, "Properties", "FunctionName", "Ref") != "DulyFunction.Alias" {
			found = append(found, name+": calls the newest version, staged or not")
		}
		pair, _ := at(mapping, "Properties", "EventSourceArn", "Fn::GetAtt").([]any)
		if len(pair) != 2 {
			found = append(found, name+": names no queue of the template")
			continue
		}
		queue := dictAt(t, "Resources", fmt.Sprint(pair[0]), "Properties")
		if visibility, _ := queue["VisibilityTimeout"].(int); passing(queue) {
			if visibility <= timeout {
				found = append(found, fmt.Sprintf("%s: VisibilityTimeout %d is not above the function's %d", name, visibility, timeout))
			}
			continue
		} else if timeout == 0 || visibility < 6*timeout {
			found = append(found, fmt.Sprintf("%s: VisibilityTimeout %d is less than six times the function's %d", name, visibility, timeout))
		}
		if at(queue, "RedrivePolicy", "deadLetterTargetArn") == nil {
			found = append(found, name+": has no dead-letter queue")
		}
		types, _ := at(mapping, "Properties", "FunctionResponseTypes").([]any)
		if !slices.Contains(types, any("ReportBatchItemFailures")) {
			found = append(found, name+": without ReportBatchItemFailures a record that failed counts as done")
		}
		if size, _ := at(mapping, "Properties", "BatchSize").(int); size < 1 || size > 10 && at(mapping, "Properties", "MaximumBatchingWindowInSeconds") == nil {
			found = append(found, name+": a batch above 10 needs a window")
		}
	}
	return found
}

func secretsAreReferences(t dict) (found []string) {
	variables := dictAt(t, "Resources", "DulyFunction", "Properties", "Environment", "Variables")
	if variables["DULY_WEBHOOK_SECRET"] != nil {
		found = append(found, "DULY_WEBHOOK_SECRET: whoever may read the function's configuration sees the secret")
	}
	for _, name := range []string{"DULY_REDIS_URL"} {
		for _, yes := range []bool{true, false} {
			if v := fmt.Sprint(resolver{t, yes}.resolve(variables[name])); v != "" && !strings.HasPrefix(v, "{{resolve:ssm:") {
				found = append(found, name+": is no dynamic reference, so that the URL would stand in the template")
			}
		}
	}
	return found
}

func variablesAreRead(t dict) (found []string) {
	files, _ := filepath.Glob("*.go")
	hosts, _ := filepath.Glob(filepath.Join("..", "host", "*", "*.go"))
	files = append(append(files, hosts...), filepath.Join("..", "core", "redisstore", "environment.go"))
	var source strings.Builder
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && !strings.HasSuffix(file, "_test.go") {
			source.Write(data)
		}
	}
	for name := range dictAt(t, "Resources", "DulyFunction", "Properties", "Environment", "Variables") {
		if !strings.Contains(source.String(), `"`+name+`"`) {
			found = append(found, name+": no code reads this variable")
		}
	}
	return found
}

func alarmsWatch(t dict) (found []string) {
	watched := map[string]string{}
	for name, r := range dictAt(t, "Resources") {
		if at(r, "Type") != "AWS::CloudWatch::Alarm" {
			continue
		}
		metric := fmt.Sprintf("%v %v", at(r, "Properties", "Namespace"), at(r, "Properties", "MetricName"))
		watched[metric] = fmt.Sprint(at(r, "Properties", "TreatMissingData"))
		if at(r, "Properties", "AlarmActions") == nil {
			found = append(found, name+": tells nobody")
		}
		points, some := at(r, "Properties", "DatapointsToAlarm").(int)
		if periods, _ := at(r, "Properties", "EvaluationPeriods").(int); !some {
			points = periods
		}
		if watched[metric] == "notBreaching" && points != 1 {
			found = append(found, name+": a schedule that is rarer than its period never sets it off")
		}
	}
	for metric, missing := range map[string]string{
		"AWS/Lambda Errors": "notBreaching", "AWS/Lambda Throttles": "notBreaching", "AWS/Lambda Invocations": "breaching",
		"AWS/SQS ApproximateNumberOfMessagesVisible":                        "notBreaching",
		lambdaadapter.MetricNamespace + " " + lambdaadapter.MetricOldestDue: "notBreaching",
	} {
		if watched[metric] != missing {
			found = append(found, fmt.Sprintf("%s: no alarm that takes missing data as %s", metric, missing))
		}
	}
	return found
}

func urlIsSigned(t dict) []string {
	if auth := at(t, "Resources", "DulyFunction", "Properties", "FunctionUrlConfig", "AuthType"); auth != "AWS_IAM" {
		return []string{fmt.Sprintf("DulyFunction: the URL's AuthType is %v", auth)}
	}
	return nil
}
