package render

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/syncpass/syncpass/policy"
)

func TestTheScheduleFollowsTheInterval(t *testing.T) {
	for _, tt := range []struct {
		interval time.Duration
		schedule string
		timeZone string
		says     string
	}{
		{30 * time.Second, "* * * * *", "", "another one 30s after the start of the last"},
		{time.Minute, "* * * * *", "", "# Every 1m: the policy's interval."},
		{90 * time.Second, "* * * * *", "", "# Cron cannot say every 1m30s, the policy's interval. This is the nearest that never waits longer: 1m between"},
		{5 * time.Minute, "*/5 * * * *", "", "# Every 5m: the policy's interval.\n"},
		{7 * time.Minute, "*/7 * * * *", "", "# Every 7m: the policy's interval. Cron cannot say it evenly"},
		{90 * time.Minute, "0 * * * *", "Etc/UTC", "# Cron cannot say every 1h30m"},
		{24 * time.Hour, "0 0 * * *", "Etc/UTC", "# Every 24h: the policy's interval."},
	} {
		t.Run(tt.interval.String(), func(t *testing.T) {
			got := renderedBy(t, optionsFor(CronJob, policyOf("p", tt.interval, resource("v1", "ConfigMap", policy.ToHost))))
			spec := got.cronJob.Spec
			assert.Equal(t, tt.schedule, spec.Schedule)
			assert.Equal(t, tt.timeZone, ptr.Deref(spec.TimeZone, ""))
			assert.Contains(t, got.text, tt.says)
			assert.Nil(t, spec.Suspend)
			assert.Equal(t, int64(max(policy.CronFor(tt.interval).Longest, time.Minute)/time.Second), *spec.StartingDeadlineSeconds)
			env := got.env()
			back, err := time.ParseDuration(env["SYNCPASS_RENDERED_INTERVAL"])
			require.NoError(t, err)
			assert.Equal(t, tt.interval, back)
			assert.Equal(t, "60s", env["SYNCPASS_WINDOW"])
			assert.Equal(t, []string{"schedule"}, got.template().Spec.Containers[0].Args)
		})
	}
}

func TestAPausedPolicySuspendsItsCronJob(t *testing.T) {
	paused := readmePolicy()
	paused.Spec.DriftDetection.Enabled = ptr.To(false)
	assert.True(t, *renderedBy(t, optionsFor(CronJob, paused)).cronJob.Spec.Suspend)
	assert.True(t, *renderedBy(t, optionsFor(Sharded, paused)).cronJob.Spec.Suspend)
	assert.Nil(t, renderedBy(t, optionsFor(Sharded, paused, readmePolicy())).cronJob.Spec.Suspend, "another tenant's is not paused")
	assert.Nil(t, renderedBy(t, optionsFor(Job, paused)).job.Spec.Suspend, "a pass that is started by hand runs")
	assert.EqualValues(t, 1, *renderedBy(t, optionsFor(Schedule, paused)).deployment.Spec.Replicas, "it waits for the policy to be resumed")
}

func TestAScheduleForSeveralTenantsIsTheirShortest(t *testing.T) {
	cm := resource("v1", "ConfigMap", policy.ToHost)
	slow, slower, paused := policyOf("slow", 5*time.Minute, cm), policyOf("slower", time.Hour, cm), policyOf("paused", time.Second, cm)
	paused.Spec.DriftDetection.Enabled = ptr.To(false)
	got := renderedBy(t, optionsFor(Sharded, slower, paused, slow))
	assert.Equal(t, "*/5 * * * *", got.cronJob.Spec.Schedule)
	assert.Equal(t, "5m", got.env()["SYNCPASS_RENDERED_INTERVAL"])
}

func TestDeadlinesNest(t *testing.T) {
	for _, passTimeout := range []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute} {
		for _, interval := range []time.Duration{30 * time.Second, 5 * time.Minute, 2 * time.Hour} {
			for _, form := range Forms {
				o := optionsFor(form, policyOf("p", interval, resource("v1", "ConfigMap", policy.ToHost)))
				o.PassTimeout, o.RequestTimeout = passTimeout, 20*time.Second
				got := renderedBy(t, o)
				grace := time.Duration(*got.template().Spec.TerminationGracePeriodSeconds) * time.Second
				assert.Greater(t, grace, 2*o.RequestTimeout, "%s: a stopped pass finishes its requests and records", form)
				spec := got.cronJob.Spec.JobTemplate.Spec
				if form == Schedule {
					continue
				} else if form == Job {
					spec = got.job.Spec
				}
				tries := time.Duration(1)
				if form != Sharded {
					tries += time.Duration(*spec.BackoffLimit)
				}
				longest := passTimeout // of one try
				if interval < window && form != Job {
					longest += window
				}
				assert.Greater(t, time.Duration(*spec.ActiveDeadlineSeconds)*time.Second, tries*longest+grace, "%s every %s: the Job's deadline cuts a pass off", form, interval)
			}
		}
	}
}

func TestAJobThatNothingFollowsSoonIsTriedAgain(t *testing.T) {
	spec := func(interval time.Duration) batchv1.JobSpec {
		return renderedBy(t, optionsFor(CronJob, policyOf("p", interval, resource("v1", "ConfigMap", policy.ToHost)))).cronJob.Spec.JobTemplate.Spec
	}
	job := renderedBy(t, optionsFor(Job, readmePolicy())).job.Spec
	assert.Zero(t, *spec(5 * time.Minute).BackoffLimit)
	assert.Equal(t, *job.BackoffLimit, *spec(24 * time.Hour).BackoffLimit)
	assert.Equal(t, job.PodFailurePolicy, spec(24*time.Hour).PodFailurePolicy)
	assert.Equal(t, *job.ActiveDeadlineSeconds, *spec(24 * time.Hour).ActiveDeadlineSeconds)
}

func TestAFailedShardStopsNoOther(t *testing.T) {
	o := optionsFor(Sharded, readmePolicy())
	o.Shards = 7
	got := renderedBy(t, o)
	spec := got.cronJob.Spec.JobTemplate.Spec
	assert.Equal(t, batchv1.IndexedCompletion, *spec.CompletionMode)
	assert.EqualValues(t, 7, *spec.Completions)
	assert.EqualValues(t, 7, *spec.Parallelism)
	assert.Equal(t, "7", got.env()["SYNCPASS_SHARDS"])
	assert.Equal(t, "true", got.env()["SYNCPASS_ALL_NAMESPACES"])
	assert.Zero(t, *spec.BackoffLimitPerIndex)
	for _, rule := range spec.PodFailurePolicy.Rules {
		assert.NotEqual(t, batchv1.PodFailurePolicyActionFailJob, rule.Action, "the other parts would be stopped")
	}
	var namespaces []string
	for _, binding := range got.bindings {
		namespaces = append(namespaces, binding.Namespace)
	}
	assert.Equal(t, []string{"team-b", "team-dev"}, namespaces)
}

func TestSettingsReachThePod(t *testing.T) {
	o := optionsFor(Schedule, readmePolicy())
	o.Settings = []Setting{{"SYNCPASS_POD_SECURITY", "restricted"}, {"SYNCPASS_CONCURRENCY", "8"}, {"SYNCPASS_RETIRE_KINDS", "true"}}
	got := renderedBy(t, o)
	env := got.env()
	assert.Equal(t, "restricted", env["SYNCPASS_POD_SECURITY"])
	assert.Equal(t, "8", env["SYNCPASS_CONCURRENCY"])
	assert.Equal(t, "true", env["SYNCPASS_RETIRE_KINDS"])
	assert.Equal(t, "dev", env["SYNCPASS_TENANT"])
	assert.NotContains(t, env, "SYNCPASS_RENDERED_INTERVAL", "the process follows the policy by itself")
	assert.Equal(t, got.deployment.Spec.Selector.MatchLabels, got.template().Labels)
}
