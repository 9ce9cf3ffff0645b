package deploy_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// rendered are the manifests of a release with some values, each strictly as Kubernetes reads it.
type rendered struct {
	deployment *appsv1.Deployment
	job        *batchv1.CronJob
	config     *corev1.ConfigMap
	service    *corev1.Service
	notes      string
}

func render(t *testing.T, values map[string]any) rendered {
	t.Helper()
	chart, err := loader.Load("chart/duly")
	require.NoError(t, err)
	all, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: "mine", Namespace: "agents"}, nil)
	require.NoError(t, err)
	files, err := engine.Render(chart, all)
	require.NoError(t, err)
	var r rendered
	for name, text := range files {
		switch {
		case strings.TrimSpace(text) == "":
		case strings.HasSuffix(name, "NOTES.txt"):
			r.notes = text
		case strings.HasSuffix(name, "deployment.yaml"):
			r.deployment = strict(t, text, &appsv1.Deployment{})
		case strings.HasSuffix(name, "cronjob.yaml"):
			r.job = strict(t, text, &batchv1.CronJob{})
		case strings.HasSuffix(name, "configmap.yaml"):
			r.config = strict(t, text, &corev1.ConfigMap{})
		case strings.HasSuffix(name, "service.yaml"):
			r.service = strict(t, text, &corev1.Service{})
		case !strings.HasSuffix(name, ".tpl"):
			t.Errorf("no test looks at %s", name)
		}
	}
	return r
}

// strict reads a manifest; a field that Kubernetes does not know is an error.
func strict[T any](t *testing.T, text string, into *T) *T {
	t.Helper()
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), into), text)
	return into
}

func TestTheChartPassesLint(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"daemon", "cron"} {
		found := lint.All("chart/duly", map[string]any{"mode": mode}, "agents", true)
		for _, m := range found.Messages {
			assert.LessOrEqual(t, m.Severity, support.InfoSev, "%s: %v", m.Path, m.Err)
		}
	}
}

func TestTheChartAsADaemon(t *testing.T) {
	t.Parallel()
	r := render(t, map[string]any{"token": map[string]any{"secret": "tokens"}, "env": []any{map[string]any{"name": "DIGEST_SECRET", "value": "x"}}})
	require.Nil(t, r.job)
	d := r.deployment
	require.NotNil(t, d)
	assert.Equal(t, d.Spec.Selector.MatchLabels, d.Spec.Template.Labels, "it finds its pods")
	pod := d.Spec.Template.Spec
	safe(t, &pod)
	assert.EqualValues(t, 40, *pod.TerminationGracePeriodSeconds, "longer than duly's own grace")
	c := pod.Containers[0]
	assert.Equal(t, []string{"daemon", "-c", "/etc/duly/duly.yaml", "--http", "0.0.0.0:8080", "--grace", "30s"}, c.Args)
	assert.Equal(t, "/healthz", c.LivenessProbe.HTTPGet.Path)
	assert.Equal(t, "/readyz", c.ReadinessProbe.HTTPGet.Path)
	assert.Equal(t, []string{"DULY_REDIS_URL", "DULY_NAME", "DULY_TOKEN", "DIGEST_SECRET"}, names(c.Env))
	require.NotNil(t, r.service)
	assert.Equal(t, d.Spec.Selector.MatchLabels, r.service.Spec.Selector)
	assert.Contains(t, r.config.Data["duly.yaml"], "note: { log: {} }")
	assert.Contains(t, r.notes, "create secret generic duly --from-literal=redis-url=")

	other := render(t, map[string]any{"file": "handlers: {}\n"})
	assert.NotEqual(t, d.Spec.Template.Annotations, other.deployment.Spec.Template.Annotations, "a changed file starts new pods")
	assert.Nil(t, other.service, "without tokens nobody outside may call it")
	assert.Contains(t, other.deployment.Spec.Template.Spec.Containers[0].Args, "127.0.0.1:8080")
	c = other.deployment.Spec.Template.Spec.Containers[0]
	probed(t, &c)
}

// probed sees that a container whose API nobody outside reaches asks it by a program of its own.
func probed(t *testing.T, c *corev1.Container) {
	t.Helper()
	require.NotNil(t, c.LivenessProbe)
	require.NotNil(t, c.ReadinessProbe)
	assert.Equal(t, []string{"/usr/local/bin/duly", "health"}, c.LivenessProbe.Exec.Command)
	assert.Equal(t, []string{"/usr/local/bin/duly", "health", "--ready"}, c.ReadinessProbe.Exec.Command)
	assert.Contains(t, c.Args, "127.0.0.1:8080")
	assert.Greater(t, c.LivenessProbe.TimeoutSeconds, int32(1), "longer than the program takes")
}

func TestTheChartAsACronJob(t *testing.T) {
	t.Parallel()
	r := render(t, map[string]any{"mode": "cron"})
	require.Nil(t, r.deployment)
	require.NotNil(t, r.job)
	pod := r.job.Spec.JobTemplate.Spec.Template.Spec
	safe(t, &pod)
	assert.Equal(t, corev1.RestartPolicyNever, pod.RestartPolicy)
	assert.Equal(t, []string{"run-due", "-c", "/etc/duly/duly.yaml", "--all", "--timeout", "50s"}, pod.Containers[0].Args)
	assert.Zero(t, *r.job.Spec.JobTemplate.Spec.BackoffLimit)
}

func TestTheChartRefusesValues(t *testing.T) {
	t.Parallel()
	chart, err := loader.Load("chart/duly")
	require.NoError(t, err)
	for name, values := range map[string]map[string]any{
		"mode": {"mode": "once"}, "replica": {"replica": 1}, "replicas": {"replicas": 0}, "url": {"redis": map[string]any{"url": "redis://x"}},
		"file": {"file": ""}, "timeout": {"cron": map[string]any{"timeout": "soon"}},
	} {
		_, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: "mine"}, nil)
		assert.ErrorContains(t, err, name)
	}
}

// The manifests of the examples are what Kubernetes takes, and as safe as those of the chart.
func TestTheExamples(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../examples/kubernetes/deployment.yaml")
	require.NoError(t, err)
	d := strict(t, string(data), &appsv1.Deployment{})
	safe(t, &d.Spec.Template.Spec)
	assert.Equal(t, d.Spec.Selector.MatchLabels, d.Spec.Template.Labels)
	assert.Greater(t, *d.Spec.Template.Spec.TerminationGracePeriodSeconds, int64(30))
	probed(t, &d.Spec.Template.Spec.Containers[0])
	data, err = os.ReadFile("../examples/kubernetes-cronjob/cronjob.yaml")
	require.NoError(t, err)
	job := strict(t, string(data), &batchv1.CronJob{})
	safe(t, &job.Spec.JobTemplate.Spec.Template.Spec)
}

// safe sees that a pod has no right that duly does not need.
func safe(t *testing.T, pod *corev1.PodSpec) {
	t.Helper()
	require.NotNil(t, pod.SecurityContext)
	assert.True(t, *pod.SecurityContext.RunAsNonRoot)
	assert.False(t, *pod.AutomountServiceAccountToken, "duly does not call Kubernetes")
	require.Len(t, pod.Containers, 1)
	c := pod.Containers[0]
	require.NotNil(t, c.SecurityContext)
	assert.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
	assert.False(t, *c.SecurityContext.AllowPrivilegeEscalation)
	assert.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop)
	volumes := map[string]bool{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
	}
	for _, m := range c.VolumeMounts {
		assert.True(t, volumes[m.Name], m.Name)
	}
	assert.NotNil(t, c.Env[0].ValueFrom.SecretKeyRef, "the URL of Redis has a password")
}

func names(env []corev1.EnvVar) (all []string) {
	for _, e := range env {
		all = append(all, e.Name)
	}
	return all
}
