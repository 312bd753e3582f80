package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/syncpass/syncpass/e2e/cluster"
	"github.com/syncpass/syncpass/e2e/scenario"
	"github.com/syncpass/syncpass/record"
	"github.com/syncpass/syncpass/record/store"
)

const (
	// cronInterval is the policy's. It lets three passes begin in the window of one Job, 60 seconds, and no fourth.
	cronInterval = 20 * time.Second
	cronPasses   = 3
	// cronSlack is for what is done beside the waiting: starting a Pod, making a pass, on a machine that is busy.
	cronSlack = 30 * time.Second
	cronPoll  = 200 * time.Millisecond
)

// TestTheCronJobMakesPassesByItself installs manifests/cronjob the way a user does, and from then on only uses the tenant.
// Every pass is the doing of the host's CronJob controller: in a Pod of the project's own image, with the token of the
// ServiceAccount and the rights of manifests/base. It waits for a full minute to begin, and most of that minute.
func TestTheCronJobMakesPassesByItself(t *testing.T) {
	t.Parallel() // it mostly waits, and other tests have something to do meanwhile
	s := nodeSuite(t)
	importRunner(t, s)
	spec := scenario.DefaultPolicy()
	spec["driftDetection"] = map[string]any{"interval": cronInterval.String()}
	layPolicy(t, s, spec)
	c := newCronJobTest(t, s)
	c.writeInTenant("1")
	c.install()

	c.awaitOnHost("1", time.Minute+cronSlack)
	for _, value := range []string{"2", "3"} {
		c.writeInTenant(value)
		c.awaitOnHost(value, cronInterval+cronSlack)
	}
	pod := c.awaitEndOfTheJob()

	passes := endedPasses(t, logs(t, c.host, pod.Name))
	require.Len(t, passes, cronPasses, "passes of one Job")
	for i, p := range passes {
		assert.Equal(t, record.Completed, p.Outcome, "pass %s", p.PassID)
		if i > 0 {
			assert.InDelta(t, cronInterval.Seconds(), p.start().Sub(passes[i-1].start()).Seconds(), cronInterval.Seconds()/4,
				"seconds from the start of pass %d to that of the next", i)
		}
	}
	ended := pod.Status.ContainerStatuses[0].State.Terminated
	assert.Zero(t, ended.ExitCode)
	assert.Less(t, ended.FinishedAt.Sub(passes[cronPasses-1].start()), cronInterval, "the Pod ends once no further pass fits")
	assert.Contains(t, ended.Message, passes[cronPasses-1].PassID, "the summary that the kubelet found in the container")
	c.requireTraces(passes)
}

// cronJobTest is the CronJob of manifests/cronjob on a host with a node.
type cronJobTest struct {
	*testing.T
	s            *surroundings
	ctx          context.Context
	host, tenant kubernetes.Interface
}

func newCronJobTest(t *testing.T, s *surroundings) *cronJobTest {
	t.Helper()
	c := &cronJobTest{T: t, s: s, ctx: s.context(t)}
	c.host, c.tenant = s.clients(t)
	c.giveReachableKubeconfig()
	return c
}

// giveReachableKubeconfig replaces the tenant's kubeconfig, whose server is a proxy that no Pod can reach, by one for its
// API server itself.
func (c *cronJobTest) giveReachableKubeconfig() {
	c.Helper()
	server, err := url.Parse(c.s.tenant.Config.Host)
	require.NoError(c, err)
	server.Host = net.JoinHostPort(c.s.node.HostAddress, server.Port())
	config := rest.CopyConfig(c.s.tenant.Config)
	config.Host = server.String()
	kubeconfig, err := (&cluster.Cluster{Name: c.s.tenant.Name, Config: config}).TokenKubeconfig(c.ctx, "kube-system", "syncpass-e2e")
	require.NoError(c, err)
	secrets := c.host.CoreV1().Secrets("team-dev")
	secret, err := secrets.Get(c.ctx, "dev-control-plane-kubeconfig", metav1.GetOptions{})
	require.NoError(c, err)
	secret.Data = map[string][]byte{"kubeconfig": kubeconfig}
	_, err = secrets.Update(c.ctx, secret, metav1.UpdateOptions{})
	require.NoError(c, err)
}

// install creates what an overlay over manifests/cronjob gives that names the image and nothing else.
func (c *cronJobTest) install() {
	c.Helper()
	c.Cleanup(c.uninstall)
	c.Cleanup(c.explainFailure)
	dir, toManifests := overlayDir(c.T)
	name, tag, _ := strings.Cut(runnerImage, ":")
	text := fmt.Sprintf("namespace: team-dev\nresources: [%s]\nimages: [{name: syncpass, newName: %s, newTag: %s}]\n",
		filepath.Join(toManifests, "cronjob"), name, tag)
	require.NoError(c, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600))
	for _, object := range render(c.T, dir) {
		require.NoError(c, strictCreate(c.T, c.s.host.Config, object), "%s %s", object.GetKind(), object.GetName())
	}
}

// uninstall removes what is in no namespace, and the CronJob with its Pods before the namespace is emptied of what they
// need.
func (c *cronJobTest) uninstall() {
	ctx, foreground := c.s.ctx, metav1.DeletePropagationForeground
	assert.NoError(c, c.host.BatchV1().CronJobs("team-dev").Delete(ctx, "syncpass", metav1.DeleteOptions{PropagationPolicy: &foreground}))
	require.EventuallyWithT(c, func(t *assert.CollectT) {
		pods, err := c.host.CoreV1().Pods("team-dev").List(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		assert.Empty(t, pods.Items)
	}, time.Minute, cronPoll, "the CronJob's Pods have gone with it")
	assert.NoError(c, c.host.RbacV1().ClusterRoles().Delete(ctx, "syncpass-policy-reader", metav1.DeleteOptions{}))
	assert.NoError(c, c.host.RbacV1().ClusterRoleBindings().Delete(ctx, "syncpass-policy-reader", metav1.DeleteOptions{}))
}

// explainFailure shows what became of the CronJob in a test that failed.
func (c *cronJobTest) explainFailure() {
	if !c.Failed() {
		return
	}
	events, err := c.host.CoreV1().Events("team-dev").List(c.s.ctx, metav1.ListOptions{})
	require.NoError(c, err)
	for _, e := range events.Items {
		c.Logf("%s %s: %s: %s", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message)
	}
	pods, err := c.host.CoreV1().Pods("team-dev").List(c.s.ctx, metav1.ListOptions{})
	require.NoError(c, err)
	for _, pod := range pods.Items {
		c.Logf("Pod %s is %s", pod.Name, pod.Status.Phase)
		if pod.Status.Phase != corev1.PodPending { // which has no log
			c.Log(logs(c.T, c.host, pod.Name))
		}
	}
}

// writeInTenant gives the tenant's ConfigMap a value.
func (c *cronJobTest) writeInTenant(value string) {
	c.Helper()
	require.NoError(c, c.s.tenant.Apply(c.ctx, fmt.Appendf(nil,
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: default}\ndata: {value: %q}\n", value)))
}

// awaitOnHost waits until its mirror has it.
func (c *cronJobTest) awaitOnHost(value string, within time.Duration) {
	c.Helper()
	require.EventuallyWithT(c, func(t *assert.CollectT) {
		mirror, err := c.host.CoreV1().ConfigMaps("team-dev").Get(c.ctx, "settings-x-default-x-dev", metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, value, mirror.Data["value"])
	}, within, cronPoll, "the value %s crosses within %s", value, within)
}

// awaitEndOfTheJob waits until the CronJob's one Job has succeeded, and returns its Pod. It first suspends the CronJob, so
// that no second Job adds to what the first one left.
func (c *cronJobTest) awaitEndOfTheJob() *corev1.Pod {
	c.Helper()
	cronJob, err := c.host.BatchV1().CronJobs("team-dev").Patch(c.ctx, "syncpass", types.MergePatchType,
		[]byte(`{"spec":{"suspend":true}}`), metav1.PatchOptions{})
	require.NoError(c, err)
	var job *batchv1.Job
	require.EventuallyWithT(c, func(t *assert.CollectT) {
		jobs, err := c.host.BatchV1().Jobs("team-dev").List(c.ctx, metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, jobs.Items, 1)
		job = &jobs.Items[0]
		assert.EqualValues(t, 1, job.Status.Succeeded, "%+v", job.Status)
	}, time.Minute, cronPoll, "the Job ends with its window")
	require.True(c, metav1.IsControlledBy(job, cronJob))
	assert.Contains(c, job.Annotations, batchv1.CronJobScheduledTimestampAnnotation, "started by the schedule, not by hand")

	pods, err := c.host.CoreV1().Pods("team-dev").List(c.ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + job.Name})
	require.NoError(c, err)
	require.Len(c, pods.Items, 1, "Pods of the Job")
	pod := &pods.Items[0]
	assert.Equal(c, c.s.node.Name, pod.Spec.NodeName)
	assert.Equal(c, runnerImage, pod.Spec.Containers[0].Image)
	require.Equal(c, corev1.PodSucceeded, pod.Status.Phase)
	return pod
}

// requireTraces finds the same passes, and no others, in the Lease and the SyncDecision.
func (c *cronJobTest) requireTraces(passes []endedPass) {
	c.Helper()
	lease, err := c.host.CoordinationV1().Leases("team-dev").Get(c.ctx, "syncpass-dev", metav1.GetOptions{})
	require.NoError(c, err)
	assert.Empty(c, *lease.Spec.HolderIdentity, "the last pass has released the Lease")
	assert.WithinDuration(c, passes[len(passes)-1].start(), lease.Spec.RenewTime.Time, 5*time.Second)
	assert.EqualValues(c, len(passes)-1, *lease.Spec.LeaseTransitions, "every pass after the first took it over")

	object, err := dynamic.NewForConfigOrDie(c.s.host.Config).Resource(store.Resource).Namespace("team-dev").Get(c.ctx, "dev", metav1.GetOptions{})
	require.NoError(c, err)
	decision := &record.SyncDecision{}
	require.NoError(c, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, decision))
	entries := decision.Status.Entries
	require.Len(c, entries, len(passes), "each pass found one thing to do")
	for i, reason := range []record.Reason{record.NoMirror, record.TenantChanged, record.TenantChanged} {
		assert.Equal(c, reason, entries[i].Reason)
		assert.Equal(c, passes[i].PassID, entries[i].PassID)
	}
}

// endedPass is the line that a pass ends its log with.
type endedPass struct {
	Time        time.Time
	Msg, PassID string
	Outcome     record.Outcome
	Seconds     float64
}

func (p endedPass) start() time.Time {
	return p.Time.Add(-time.Duration(p.Seconds * float64(time.Second)))
}

// endedPasses are the passes in a log of JSON lines.
func endedPasses(t *testing.T, log string) []endedPass {
	t.Helper()
	var all []endedPass
	for line := range strings.Lines(log) {
		var p endedPass
		require.NoError(t, json.Unmarshal([]byte(line), &p), "%s", line)
		if p.Msg == "Pass ended" {
			all = append(all, p)
		}
	}
	return all
}
