package main_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	lambdaadapter "github.com/seed-6f6f2c11/duly/adapters/lambda"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
)

func template(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("template.yaml")
	require.NoError(t, err)
	return string(text)
}

// findings are all that is wrong with a template.
func findings(t *testing.T, text string, s *schemas) []string {
	t.Helper()
	read, err := readTemplate(text)
	if err != nil {
		return []string{err.Error()}
	}
	found := rulesFindings(read)
	if s != nil {
		found = append(found, s.findings(read)...)
	}
	return found
}

func TestTheTemplate(t *testing.T) {
	t.Parallel()
	s := loadSchemas(t)
	assert.Empty(t, findings(t, template(t), s))
	if s == nil {
		t.Skip("the schemas are not beside the repository: only our own rules were checked")
	}
}

// mistakes are made in the template, each where its old text is.
var mistakes = []struct{ name, old, new, want string }{
	{"runtime", "Runtime: provided.al2023", "Runtime: go1.x", "Runtime: is go1.x"},
	{"handler", "Handler: bootstrap", "Handler: main", "Handler: is main"},
	{"build method", "BuildMethod: makefile", "BuildMethod: go1.x", "BuildMethod: is go1.x"},
	{"architecture", "Architectures: [arm64]", "Architectures: [x86_64]", "the Makefile builds for arm64"},
	{"logical id", "\n  DulyFunction:\n", "\n  OtherFunction:\n", "the Makefile has no target build-OtherFunction"},
	{"unquoted off", `Mode: "OFF"`, "Mode: OFF", `is false: quote "OFF"`},
	{"rate of one", "Default: rate(1 minute)", "Default: rate(1 minutes)", `"rate(1 minutes)" is no schedule`},
	{"rate of many", "Default: rate(1 minute)", "Default: rate(5 minute)", `"rate(5 minute)" does not match its pattern`},
	{"schedule's type", "Type: ScheduleV2", "Type: Schedule", "Tick: is no ScheduleV2"},
	{"input", `{"kind": "tick",`, `{"kind": tick,`, "the input is no JSON"},
	{"visibility", "VisibilityTimeout: 360", "VisibilityTimeout: 60", "less than six times"},
	{"timeout", "Timeout: 60\n", "Timeout: 120\n", "less than six times the function's 120"},
	{"batch failures", "FunctionResponseTypes: [ReportBatchItemFailures]", "Enabled: true", "counts as done"},
	{"batch size", "BatchSize: 10", "BatchSize: 1000", "needs a window"},
	{"redrive", "deadLetterTargetArn: !GetAtt DeadLetterQueue.Arn\n        ", "", "IntakeMapping: has no dead-letter queue"},
	{"schedule's name", "OmitName: true", "OmitName: false", "a second stack in the account fails"},
	{"role", "Role: !GetAtt FunctionRole.Arn", "Policies: [VPCAccessPolicy: {}]", "its role is SAM's"},
	{
		"VPC policy without a VPC", "ManagedPolicyArns: !If\n        - InVpc\n        - [!Sub \"arn:${AWS::Partition}:iam::aws:policy/service-role/AWSLambdaVPCAccessExecutionRole\"]\n        - !Ref AWS::NoValue",
		"ManagedPolicyArns: [arn:aws:iam::aws:policy/service-role/AWSLambdaVPCAccessExecutionRole]", "policies of AWS without a VPC",
	},
	{"every queue", "GetQueueAttributes]\n                Resource: !GetAtt Intake.Arn", "GetQueueAttributes]\n                Resource: \"*\"", "Resource * is not one by name"},
	{"queue's event", "        Tick:\n          Type: ScheduleV2", "        Queue: {Type: SQS, Properties: {Queue: x}}\n        Tick:\n          Type: ScheduleV2", "read every queue"},
	{"mapping's function", "Intake.Arn\n      FunctionName: !Ref DulyFunction.Alias", "Intake.Arn\n      FunctionName: !Ref DulyFunction", "IntakeMapping: calls the newest version"},
	{"alarm's pause", "VisibilityTimeout: 90", "VisibilityTimeout: 60", "AlarmMapping: VisibilityTimeout 60 is not above"},
	{"alarm's failures", "BatchSize: 5", "BatchSize: 5\n      FunctionResponseTypes: [ReportBatchItem]", "AlarmMapping: a wake-up that failed counts as done"},
	{"alarm always", "Alarms:\n    Type: AWS::SQS::Queue\n    Condition: HasAlarm\n", "Alarms:\n    Type: AWS::SQS::Queue\n", "Alarms: is there without Alarm"},
	{"endpoints always", "SqsEndpoint:\n    Type: AWS::EC2::VPCEndpoint\n    Condition: HasEndpoints\n", "SqsEndpoint:\n    Type: AWS::EC2::VPCEndpoint\n", "SqsEndpoint: is there without HasEndpoints"},
	{"an endpoint less", "${AWS::Region}.scheduler\"", "${AWS::Region}.events\"", "no endpoint of scheduler"},
	{"an endpoint's name", "AWS::Region}.sqs\"\n      VpcId: !Ref VpcId\n      SubnetIds: !Ref SubnetIds\n      SecurityGroupIds: [!GetAtt EndpointSecurityGroup.GroupId]\n      PrivateDnsEnabled: true", "AWS::Region}.sqs\"\n      VpcId: !Ref VpcId\n      SubnetIds: !Ref SubnetIds\n      SecurityGroupIds: [!GetAtt EndpointSecurityGroup.GroupId]\n      PrivateDnsEnabled: false", "SqsEndpoint: has not the name"},
	{"alarm's watchdog", "rate(15 minutes)", "rate(15 days)", "Tick: is rate(15 days) and not"},
	{"alarm's role", "Condition: {StringEquals: {\"iam:PassedToService\": scheduler.amazonaws.com}}", "Sid: all", "iam:PassRole is for every service"},
	{"any schedule", "schedule/${AlarmSchedules}/duly-*", "schedule/*", "is not one by name"},
	{"alias", "AutoPublishAlias: live", "Tags: {}", "DulyFunction: nothing has this name"},
	{"parameters alone", "AutoPublishAliasAllProperties: true", "AutoPublishAliasAllProperties: false", "a changed parameter makes no version"},
	{"staged", "Canary10Percent5Minutes: {Staged: \"true\"}", "Canary10Percent5Minutes: {Staged: \"false\"}", "Canary10Percent5Minutes is not staged"},
	{"kept queue", "Intake:\n    Type: AWS::SQS::Queue\n    DeletionPolicy: Retain", "Intake:\n    Type: AWS::SQS::Queue\n    DeletionPolicy: Delete", "Intake: its messages go with the stack"},
	{"rule", "!Equals [!Ref ElastiCache, \"\"], !Equals", "!Not [!Equals [!Ref ElastiCache, \"\"]], !Equals", "Rules: map"},
	{"secret in the configuration", "DULY_WEBHOOK_SECRET_ID: !Ref WebhookSecret", "DULY_WEBHOOK_SECRET: !Ref WebhookSecret", "sees the secret"},
	{"metric", "MetricName: oldest_due", "MetricName: due", "duly oldest_due: no alarm"},
	{"tick's retries", "MaximumRetryAttempts: 0\n      Events", "MaximumRetryAttempts: 1\n      Events", "EventInvokeConfig: a tick is repeated"},
	{"tick's destination", "MaximumRetryAttempts: 0\n      Events", "MaximumRetryAttempts: 0\n        DestinationConfig: {}\n      Events", "Tick: is kept"},
	{"schedule's retries", "RetryPolicy:\n              MaximumRetryAttempts: 0", "RetryPolicy: {}", "Tick: a tick is repeated"},
	{"schedule's dead letters", "            RetryPolicy:", "            DeadLetterConfig: {Arn: x}\n            RetryPolicy:", "Tick: is kept"},
	{"unused parameter", "\n  LogDays:\n", "\n  Spare: {Type: String, Default: x}\n  LogDays:\n", "Spare: is not used"},
	{"ungrouped parameter", "[Deployment, AlarmTopic, LogDays]", "[Deployment, AlarmTopic]", "LogDays: is in no group"},
	{"unknown parameter", "AlarmTopic, LogDays]", "AlarmTopic, LogDays, Days]", "Days: is in a group and no parameter"},
	{"default out of bounds", "Default: 256", "Default: 64", "out of bounds"},
	{"default not allowed", "Default: 14", "Default: 15", `"15" is not allowed`},
	{"ref", "MemorySize: !Ref MemorySize", "MemorySize: !Ref Memory", "Memory: nothing has this name"},
	{"sub", ":secret:${WebhookSecret}-", ":secret:${WebhooksSecret}-", "WebhooksSecret: nothing has this name"},
	{"attribute", "Value: !GetAtt FunctionSecurityGroup.GroupId", "Value: !GetAtt FunctionSecurityGroup.Identity", `no attribute "Identity"`},
	{"url's attribute", "DulyFunctionUrl.FunctionUrl", "DulyFunctionUrl.Url", `DulyFunctionUrl: has no attribute "Url"`},
	{"condition", "- HasWebhookSecret\n", "- HasWebhooksSecret\n", "HasWebhooksSecret: no such condition"},
	{"unused condition", "\n  InVpc: ", "\n  Never: !Equals [a, b]\n  InVpc: ", "Never: is not used"},
	{"resource type", "Type: AWS::Logs::LogGroup", "Type: AWS::Logs::Group", "the type AWS::Logs::Group is not one"},
	{"plain secret", `!Sub "{{resolve:ssm:${RedisParameter}}}"`, "!Ref RedisParameter", "DULY_REDIS_URL: is no dynamic reference"},
	{"variable", "DULY_PREFIX:", "DULY_KEY_PREFIX:", "DULY_KEY_PREFIX: no code reads this variable"},
	{"open url", "AuthType: AWS_IAM", "AuthType: NONE", "AuthType is NONE"},
	{"silence", "TreatMissingData: breaching", "TreatMissingData: missing", "AWS/Lambda Invocations: no alarm"},
	{"alarm's metric", "MetricName: Throttles", "MetricName: Throttled", "AWS/Lambda Throttles: no alarm"},
	{"alarm at a rare schedule", "within the period.\n      Period: 300\n      EvaluationPeriods: 1", "within the period.\n      Period: 60\n      EvaluationPeriods: 5", "ErrorAlarm: a schedule that is rarer"},
	{"key twice", "MaximumEventAgeInSeconds: 60", "MaximumEventAgeInSeconds: 60\n        MaximumEventAgeInSeconds: 90", "stands twice"},

	{"schema: property of the function", "MemorySize: !Ref MemorySize", "Memory: !Ref MemorySize", "schema: "},
	{"schema: event's property", "EventSourceArn: !GetAtt Intake.Arn", "EventSourceArn: !GetAtt Intake.Arn\n      Batch: 1", "schema: "},
	{"schema: queue's property", "SqsManagedSseEnabled: true\n      Red", "ManagedSse: true\n      Red", "Intake: schema: "},
	{"schema: retention", "MessageRetentionPeriod: 345600", "MessageRetentionPeriod: four days", "Intake: schema: "},
	{"schema: comparison", "ComparisonOperator: LessThanThreshold\n      ", "", "SilenceAlarm: schema: "},
	{"schema: alarm's property", "EvaluationPeriods: 1\n      Threshold: 1\n      ComparisonOperator: GreaterThanOrEqualToThreshold\n      TreatMissingData: notBreaching\n      AlarmActions: !If [HasAlarmTopic, [!Ref AlarmTopic], !Ref AWS::NoValue]\n\n  Thr", "Datapoints: 1\n\n  Thr", "ErrorAlarm: schema: "},
	{"schema: group without description", "GroupDescription: What duly may connect to. Let this group in where Redis is.\n      ", "", "FunctionSecurityGroup: schema: "},
	{"schema: concurrency", "MaximumConcurrency: !Ref MaxConcurrency", "MaximumConcurrency: 1", "schema: "},
	{"schema: response type", "[ReportBatchItemFailures]", "[ReportBatchItemFailures, ReportAll]", "schema: "},
	{"schema: attempts", "MaximumRetryAttempts: 0\n      Events", "MaximumRetryAttempts: 5\n      Events", "schema: "},
	{"schema: logging", "LogFormat: JSON", "LogFormat: json", "schema: "},
}

// Each rule finds a mistake that was made for it.
func TestMistakesInTheTemplateAreFound(t *testing.T) {
	t.Parallel()
	good := template(t)
	s := loadSchemas(t)
	for _, m := range mistakes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, 1, strings.Count(good, m.old), "the mistake is made in one place")
			if strings.HasPrefix(m.name, "schema: ") && s == nil {
				t.Skip("the schemas are not beside the repository")
			}
			found := findings(t, strings.Replace(good, m.old, m.new, 1), s)
			assert.Contains(t, strings.Join(found, "\n"), m.want)
		})
	}
}

// A function and a daemon that are told no prefix share their tasks, and the documented ACL lets both in.
func TestTheTemplatesPrefixIsTheDefaultOne(t *testing.T) {
	t.Parallel()
	read, err := readTemplate(template(t))
	require.NoError(t, err)
	assert.Equal(t, redisstore.DefaultPrefix, at(read, "Parameters", "KeyPrefix", "Default"))
}

// What the schedule sends is a tick, once its placeholders are filled in.
func TestTheSchedulesInputIsATick(t *testing.T) {
	t.Parallel()
	read, err := readTemplate(template(t))
	require.NoError(t, err)
	input := at(read, "Resources", "DulyFunction", "Properties", "Events", "Tick", "Properties", "Input").(string)
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
	require.NoError(t, err)
	f, err := lambdaadapter.New(s, lambdaadapter.Config{})
	require.NoError(t, err)
	event := strings.NewReplacer("<aws.scheduler.schedule-arn>", "arn:aws:scheduler:eu-north-1:111122223333:schedule/default/duly",
		"<aws.scheduler.scheduled-time>", "2026-11-02T07:17:00Z").Replace(input)
	for _, want := range []string{`"ran":0`, `"duplicate":true`} {
		answer, err := f.Invoke(t.Context(), []byte(event))
		require.NoError(t, err)
		assert.Contains(t, string(answer), want)
	}
	_, err = f.Invoke(t.Context(), []byte(input))
	assert.ErrorContains(t, err, "schedule-arn must be the ARN", "what nobody filled in is no tick")
}
