package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// manifestsDir is the folder of the kustomizations, seen from this package.
const manifestsDir = "../manifests"

// forms are the kustomizations that carry out passes, each with the kind of its workload.
var forms = map[string]string{"cronjob": "CronJob", "job": "Job", "schedule": "Deployment"}

// render returns the objects of a kustomization, as `kubectl kustomize` prints them.
func render(t *testing.T, dir string) []*unstructured.Unstructured {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	require.NoError(t, err, "rendering %s", dir)
	var objects []*unstructured.Unstructured
	for _, r := range resources.Resources() {
		// Through JSON, since kustomize's numbers are ints, which unstructured content must not hold.
		data, err := r.MarshalJSON()
		require.NoError(t, err)
		object := &unstructured.Unstructured{}
		require.NoError(t, object.UnmarshalJSON(data))
		objects = append(objects, object)
	}
	require.NotEmpty(t, objects)
	return objects
}

func renderForm(t *testing.T, form string) []*unstructured.Unstructured {
	t.Helper()
	return render(t, filepath.Join(manifestsDir, form))
}

// find returns the one object of this kind as its Go type.
func find[T any](t *testing.T, objects []*unstructured.Unstructured, kind string) *T {
	t.Helper()
	var found []*T
	for _, object := range objects {
		if object.GetKind() == kind {
			typed := new(T)
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true))
			found = append(found, typed)
		}
	}
	require.Len(t, found, 1, "objects of kind %s", kind)
	return found[0]
}

// jobSpec returns the spec of the form's Jobs.
func jobSpec(t *testing.T, form string) batchv1.JobSpec {
	t.Helper()
	if form == "cronjob" {
		return find[batchv1.CronJob](t, renderForm(t, form), "CronJob").Spec.JobTemplate.Spec
	}
	return find[batchv1.Job](t, renderForm(t, form), "Job").Spec
}

// podTemplate returns the template of the form's Pods.
func podTemplate(t *testing.T, form string) corev1.PodTemplateSpec {
	t.Helper()
	if form == "schedule" {
		return find[appsv1.Deployment](t, renderForm(t, form), "Deployment").Spec.Template
	}
	return jobSpec(t, form).Template
}

// environment returns what the form's container is given, literally or by the settings.
func environment(t *testing.T, form string) map[string]string {
	t.Helper()
	settings := find[corev1.ConfigMap](t, renderForm(t, form), "ConfigMap")
	container := podTemplate(t, form).Spec.Containers[0]
	require.Len(t, container.EnvFrom, 1)
	require.Equal(t, settings.Name, container.EnvFrom[0].ConfigMapRef.Name, "the container reads other settings than are installed")
	values := map[string]string{}
	for name, value := range settings.Data {
		values[name] = value
	}
	for _, variable := range container.Env {
		values[variable.Name] = variable.Value
	}
	return values
}

func TestEveryFormInstallsOneWorkloadAndTheSameRights(t *testing.T) {
	base := renderForm(t, "base")
	for form, kind := range forms {
		t.Run(form, func(t *testing.T) {
			var workloads []string
			objects := renderForm(t, form)
			for _, object := range objects {
				switch object.GetKind() {
				case "CronJob", "Job", "Deployment":
					workloads = append(workloads, object.GetKind())
				case "ClusterRole", "ClusterRoleBinding":
					assert.Empty(t, object.GetNamespace())
					continue
				}
				assert.Equal(t, "team-dev", object.GetNamespace(), "namespace of %s %s", object.GetKind(), object.GetName())
			}
			assert.Equal(t, []string{kind}, workloads)
			assert.Equal(t, find[rbacv1.Role](t, base, "Role").Rules, find[rbacv1.Role](t, objects, "Role").Rules)
		})
	}
}

func TestRightsAreBoundToTheRunnersServiceAccountAlone(t *testing.T) {
	objects := renderForm(t, "base")
	account := find[corev1.ServiceAccount](t, objects, "ServiceAccount")
	want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: "team-dev"}}
	assert.Equal(t, want, find[rbacv1.RoleBinding](t, objects, "RoleBinding").Subjects)
	assert.Equal(t, want, find[rbacv1.ClusterRoleBinding](t, objects, "ClusterRoleBinding").Subjects)
	for form := range forms {
		assert.Equal(t, account.Name, podTemplate(t, form).Spec.ServiceAccountName, form)
	}
}

func TestTheOnlyClusterWideRightIsToReadOnePolicy(t *testing.T) {
	rules := find[rbacv1.ClusterRole](t, renderForm(t, "base"), "ClusterRole").Rules
	assert.Equal(t, []rbacv1.PolicyRule{{
		APIGroups: []string{"tenantplane.io"}, Resources: []string{"syncpolicies"}, Verbs: []string{"get"},
	}}, rules)
}

func TestNoRuleOfTheRoleIsOpenEndedOrWatches(t *testing.T) {
	for _, rule := range find[rbacv1.Role](t, renderForm(t, "base"), "Role").Rules {
		allowed := []string{"get", "list", "create", "update", "delete"}
		if slices.Equal(rule.Resources, []string{"events"}) || slices.Equal(rule.Resources, []string{"syncdecisions/status"}) {
			allowed = append(allowed, "patch") // of what is no mirror
		}
		assert.Subset(t, allowed, rule.Verbs, "verbs on %v", rule.Resources)
		assert.NotContains(t, rule.APIGroups, "*")
		assert.NotContains(t, rule.Resources, "*")
	}
}

func TestTheThreeFormsRunTheSamePod(t *testing.T) {
	// What a form may differ in: when it ends, what it is told, and how it is looked after.
	alike := func(form string) corev1.PodSpec {
		spec := podTemplate(t, form).Spec
		spec.RestartPolicy = ""
		require.Len(t, spec.Containers, 1)
		c := &spec.Containers[0]
		c.Args, c.Ports, c.StartupProbe, c.LivenessProbe, c.ReadinessProbe = nil, nil, nil, nil, nil
		c.Env = nil
		return spec
	}
	assert.Equal(t, alike("cronjob"), alike("job"))
	assert.Equal(t, alike("cronjob"), alike("schedule"))
}

func TestThePodIsClosedAndBounded(t *testing.T) {
	spec := podTemplate(t, "cronjob").Spec
	assert.False(t, *spec.EnableServiceLinks, "mirrored Services would show up in the environment")
	c := spec.Containers[0]
	assert.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
	assert.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop)
	for _, list := range []corev1.ResourceList{c.Resources.Requests, c.Resources.Limits} {
		assert.Contains(t, list, corev1.ResourceCPU)
		assert.Contains(t, list, corev1.ResourceMemory)
	}
}

// The defaults of SYNCPASS_PASS_TIMEOUT and SYNCPASS_REQUEST_TIMEOUT, which the manifests leave alone.
const (
	passTimeout    = 5 * time.Minute
	requestTimeout = 15 * time.Second
)

func TestDeadlinesNest(t *testing.T) {
	for form := range forms {
		grace := time.Duration(*podTemplate(t, form).Spec.TerminationGracePeriodSeconds) * time.Second
		assert.Greater(t, grace, 2*requestTimeout, "%s: a stopped pass finishes its requests and records", form)
		if form == "schedule" {
			continue
		}
		spec := jobSpec(t, form)
		var window time.Duration
		if form == "cronjob" {
			var err error
			window, err = time.ParseDuration(environment(t, form)["SYNCPASS_WINDOW"])
			require.NoError(t, err)
		}
		tries := time.Duration(*spec.BackoffLimit + 1)
		active := time.Duration(*spec.ActiveDeadlineSeconds) * time.Second
		assert.Greater(t, active, tries*(window+passTimeout)+grace, "%s: the Job's deadline cuts a pass off", form)
	}
}

func TestTheCronJobReachesTheDefaultInterval(t *testing.T) {
	cronJob := find[batchv1.CronJob](t, renderForm(t, "cronjob"), "CronJob")
	assert.Equal(t, "* * * * *", cronJob.Spec.Schedule)
	assert.Equal(t, batchv1.ForbidConcurrent, cronJob.Spec.ConcurrencyPolicy)
	// The controller looks every ten seconds; a shorter deadline would be missed by chance.
	assert.GreaterOrEqual(t, *cronJob.Spec.StartingDeadlineSeconds, int64(10))
	assert.Zero(t, *cronJob.Spec.JobTemplate.Spec.BackoffLimit)

	window, err := time.ParseDuration(environment(t, "cronjob")["SYNCPASS_WINDOW"])
	require.NoError(t, err)
	assert.Greater(t, window, 30*time.Second, "the second pass of the minute does not fit")
	assert.LessOrEqual(t, window, 60*time.Second, "the third pass would be the next Job's")
}

func TestDisruptionIsJudgedBeforeExitCodes(t *testing.T) {
	for _, form := range []string{"cronjob", "job"} {
		spec := jobSpec(t, form)
		require.NotNil(t, spec.PodFailurePolicy, form)
		assert.Equal(t, corev1.RestartPolicyNever, spec.Template.Spec.RestartPolicy, form)
		first := spec.PodFailurePolicy.Rules[0]
		assert.Equal(t, batchv1.PodFailurePolicyActionIgnore, first.Action, form)
		require.Len(t, first.OnPodConditions, 1, form)
		assert.Equal(t, corev1.DisruptionTarget, first.OnPodConditions[0].Type, form)
	}
}

func TestExitCodesLeadToTheActionThatTheyNeed(t *testing.T) {
	const ignore, fail, count = batchv1.PodFailurePolicyActionIgnore, batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyActionCount
	want := map[string]map[int32]batchv1.PodFailurePolicyAction{
		"cronjob": {1: fail, 2: fail, 3: fail, 4: fail, 5: fail, 6: ignore, 7: fail, 143: fail},
		"job":     {1: count, 2: fail, 3: fail, 4: fail, 5: fail, 6: ignore, 7: count, 143: count},
	}
	for form, codes := range want {
		policy := jobSpec(t, form).PodFailurePolicy
		for code, action := range codes {
			assert.Equal(t, action, actionFor(policy, code), "%s: action for exit code %d", form, code)
		}
	}
}

// actionFor is what the Job controller does with a container that ended with this code and met no disruption: the
// first rule that matches, or else Count.
func actionFor(policy *batchv1.PodFailurePolicy, code int32) batchv1.PodFailurePolicyAction {
	for _, rule := range policy.Rules {
		if rule.OnExitCodes == nil {
			continue
		}
		in := false
		for _, value := range rule.OnExitCodes.Values {
			in = in || value == code
		}
		if in == (rule.OnExitCodes.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn) {
			return rule.Action
		}
	}
	return batchv1.PodFailurePolicyActionCount
}

// overlayDir makes a folder for a kustomization, and returns it with the path from there to the manifests.
func overlayDir(t *testing.T) (dir, toManifests string) {
	t.Helper()
	// kustomize takes no absolute path, and compares paths after following links.
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	manifests, err := filepath.Abs(manifestsDir)
	require.NoError(t, err)
	manifests, err = filepath.EvalSymlinks(manifests)
	require.NoError(t, err)
	toManifests, err = filepath.Rel(dir, manifests)
	require.NoError(t, err)
	return dir, toManifests
}

// documentedOverlay renders the kustomization in the comment at the top of base/kustomization.yaml.
func documentedOverlay(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(manifestsDir, "base", "kustomization.yaml"))
	require.NoError(t, err)
	var text strings.Builder
	for line := range strings.Lines(string(source)) {
		if example, ok := strings.CutPrefix(line, "#   "); ok {
			text.WriteString(example)
		}
	}
	dir, toManifests := overlayDir(t)
	overlay := strings.Replace(text.String(), "../syncpass/manifests", toManifests, 1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(overlay), 0o600))
	return render(t, dir)
}

func TestTheDocumentedOverlayMakesASecondInstallationBesideTheFirst(t *testing.T) {
	first := map[string]bool{}
	for _, object := range renderForm(t, "cronjob") {
		if object.GetNamespace() == "" {
			first[object.GetKind()+"/"+object.GetName()] = true
		}
	}
	require.Len(t, first, 2)

	objects := documentedOverlay(t)
	for _, object := range objects {
		id := object.GetKind() + "/" + object.GetName()
		assert.False(t, first[id], "%s replaces the first installation's", id)
		data, err := object.MarshalJSON()
		require.NoError(t, err)
		assert.NotContains(t, string(data), "team-dev", "%s still refers to the example namespace", id)
	}
	container := find[batchv1.CronJob](t, objects, "CronJob").Spec.JobTemplate.Spec.Template.Spec.Containers[0]
	assert.Equal(t, "registry.example.com/syncpass:v0.1.0", container.Image)
	settings := find[corev1.ConfigMap](t, objects, "ConfigMap")
	assert.Equal(t, "b", settings.Data["SYNCPASS_TENANT"])
	assert.Equal(t, settings.Name, container.EnvFrom[0].ConfigMapRef.Name)
}
