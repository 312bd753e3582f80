package render

import (
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/syncpass/syncpass/policy"
)

const (
	// window is how long the process of a Job looks after its tenants: what a one-minute CronJob needs to come to every
	// interval below that. Where the interval is longer, one pass fits into it, and the process ends after that one.
	window = time.Minute
	// startAndStop is how long a Job has beyond its passes: for pulling the image, and for a clean stop.
	startAndStop = 2 * time.Minute
	// tries is how often a Job is tried that nothing follows soon.
	tries = 4
	// betweenTries are the waits between them together (10s, 20s and 40s), and what each try needs beyond its pass.
	betweenTries = 5 * time.Minute
	// retriesFrom is the time between two Jobs from which on a Job that fails is tried again, rather than left to the next.
	retriesFrom = time.Hour
	// afterRequests is how long a stopped pass has beyond the requests in flight, for its record and its Lease.
	afterRequests = 45 * time.Second
)

// workload is what carries out the passes.
func (o Options) workload() ([]*yaml.Node, error) {
	path := map[Form]string{CronJob: "cronjob/cronjob.yaml", Job: "job/job.yaml", Schedule: "schedule/deployment.yaml", Sharded: "sharded/cronjob.yaml"}[o.Form]
	all, err := documents(path)
	if err != nil {
		return nil, err
	}
	all[0].HeadComment = ""
	root := object(all[0])
	root.Content[0].HeadComment = ""
	metadata, spec := o.metadata(o.name()), at(root, "spec")
	switch o.Form {
	case CronJob, Sharded:
		put(root, "metadata", metadata)
		return all, o.cronJob(spec)
	case Job:
		root.Content[0].HeadComment = remark("A Job cannot be changed, and a finished one does not run again: delete it first (`kubectl delete job " + o.name() + " -n " + o.Namespace +
			" --ignore-not-found`), or let the GitOps tool replace it.")
		put(root, "metadata", metadata)
		o.job(spec, tries*o.PassTimeout+betweenTries, o.nesting(fmt.Sprintf("pass %s < this, which has room for all %s tries and the waits between them.", short(o.PassTimeout), "four")))
		o.pod(at(spec, "template"))
	case Schedule:
		put(root, "metadata", metadata)
		labels := o.labels()
		put(labels, "app.kubernetes.io/component", text("schedule"))
		put(at(spec, "selector"), "matchLabels", labels)
		if !o.schedule().Enabled {
			put(spec, "replicas", number(1), "The policy is paused (driftDetection.enabled: false): the process waits until it is resumed, which it notices within a minute.")
		}
		o.pod(at(spec, "template"))
		put(at(spec, "template", "metadata"), "labels", labels)
	}
	return all, nil
}

// cronJob fits a CronJob to the policies' interval.
func (o Options) cronJob(spec *yaml.Node) error {
	schedule := o.schedule()
	cron := policy.CronFor(schedule.Interval)
	put(spec, "schedule", quoted(cron.Expression), cadence(schedule.Interval, cron, len(o.Policies) > 1))
	if cron.Longest >= time.Hour {
		putAfter(spec, "schedule", "timeZone", text("Etc/UTC"), "No hour is missing there, and none comes twice.")
	}
	if !schedule.Enabled {
		putAfter(spec, "schedule", "suspend", truth(true), "The policy is paused (driftDetection.enabled: false). `kubectl create job --from=cronjob/"+o.name()+"` makes a pass all the same.")
	}
	put(spec, "startingDeadlineSeconds", number(seconds(cron.Longest)))
	if cron.Longest > time.Minute {
		put(spec, "concurrencyPolicy", at(spec, "concurrencyPolicy"),
			"A pass that is still under way makes the next one wait. (Passes started by other means are kept apart by the tenant's Lease, which this field knows nothing of.)")
		put(spec, "startingDeadlineSeconds", at(spec, "startingDeadlineSeconds"),
			"A start that is missed by less than the time to the next one is made up for.")
	}

	job := at(spec, "jobTemplate", "spec")
	template := at(spec, "jobTemplate")
	template.Content = append([]*yaml.Node{text("metadata"), mapping("labels", o.labels())}, template.Content...)
	active := window + o.PassTimeout + startAndStop
	nested := o.nesting(fmt.Sprintf("pass %s < window %s + pass %s < this, which leaves two minutes for pulling the image and for a clean stop.", short(o.PassTimeout), "60s", short(o.PassTimeout)))
	switch {
	case o.Form == Sharded:
		for _, key := range []string{"completions", "parallelism"} {
			put(job, key, number(int64(o.Shards)))
		}
	case cron.Longest >= retriesFrom:
		// The next Job is far away: this one is tried again where that can help, as a Job by itself is.
		single, err := documents("job/job.yaml")
		if err != nil {
			return err
		}
		for _, key := range []string{"backoffLimit", "podFailurePolicy"} {
			take(job, at(object(single[0]), "spec"), key)
		}
		active = tries*o.PassTimeout + betweenTries
		nested = o.nesting(fmt.Sprintf("pass %s < this, which has room for all four tries and the waits between them.", short(o.PassTimeout)))
	case cron.Longest > time.Minute:
		put(job, "backoffLimit", at(job, "backoffLimit"), "The next Job is the retry.")
	}
	o.job(job, active, nested)
	o.pod(at(job, "template"))
	return nil
}

// cadence says what a schedule comes to.
func cadence(interval time.Duration, cron policy.Cron, several bool) string {
	every := short(interval)
	whose := "the policy's interval"
	if several {
		whose = "the shortest interval of the policies"
	}
	switch {
	case interval < time.Minute:
		return "Every minute, which is as often as cron can. The process that it starts makes a pass at once and, as " + whose + " is " + every + ", another one " + every + " after the start of the last, until its window closes."
	case cron.Even:
		return "Every " + every + ": " + whose + "."
	case cron.Longest == interval.Truncate(time.Minute) && interval < time.Hour && interval%time.Minute == 0:
		last := time.Hour - (time.Hour - 1).Truncate(interval)
		return "Every " + every + ": " + whose + ". Cron cannot say it evenly, as it counts from the full hour: the last pass before that is " + short(last) + " before the next one."
	}
	return "Cron cannot say every " + every + ", " + whose + ". This is the nearest that never waits longer: " + short(cron.Longest) + " between two passes, or less where cron begins to count anew."
}

// nesting says how the deadlines nest, up to the pass.
func (o Options) nesting(rest string) string {
	return fmt.Sprintf("The outermost deadline. They nest: request %s < lease %s < %s", short(o.RequestTimeout), short(o.LeaseDuration), rest)
}

// job sets the deadline of a Job.
func (o Options) job(spec *yaml.Node, active time.Duration, comment string) {
	put(spec, "activeDeadlineSeconds", number(seconds(active)), comment)
}

// pod fits the Pod to the tenant and the settings.
func (o Options) pod(template *yaml.Node) {
	if at(template, "metadata") == nil {
		template.Content = append([]*yaml.Node{text("metadata"), mapping()}, template.Content...)
	}
	put(at(template, "metadata"), "labels", o.labels())
	spec := at(template, "spec")
	put(spec, "serviceAccountName", text(o.name()))
	if grace := o.RequestTimeout + afterRequests; grace > time.Minute {
		put(spec, "terminationGracePeriodSeconds", number(seconds(grace)),
			"On a stop the pass finishes the requests in flight ("+short(o.RequestTimeout)+" at most), records what it did, and releases the Lease.")
	}
	container := at(spec, "containers").Content[0]
	if digested().MatchString(o.Image) {
		put(container, "image", text(o.Image))
	} else {
		put(container, "image", text(o.Image), "By its tag, which may mean another image tomorrow. --image registry/name@sha256:… pins it.")
	}
	drop(container, "envFrom")
	env := at(container, "env")
	env.Content = append(o.selection(), o.variables(env.Content)...)
}

// selection are the variables that say which tenants the passes are over.
func (o Options) selection() []*yaml.Node {
	if o.Form == Sharded {
		return []*yaml.Node{variable("SYNCPASS_ALL_NAMESPACES", text("true"))}
	}
	return []*yaml.Node{variable("SYNCPASS_TENANT", text(o.Tenant))}
}

// variables are the manifest's, fitted, with the settings before them.
func (o Options) variables(manifest []*yaml.Node) []*yaml.Node {
	var all []*yaml.Node
	for _, s := range o.Settings {
		all = append(all, variable(s.Name, text(s.Value)))
	}
	interval := o.schedule().Interval
	for _, v := range manifest {
		switch at(v, "name").Value {
		case "SYNCPASS_SHARDS":
			put(v, "value", quoted(fmt.Sprint(o.Shards)))
		case "SYNCPASS_WINDOW":
			v.HeadComment = remark("A pass that would start as this closes is the next Job's.")
			if interval >= window {
				v.HeadComment = remark("One pass fits into it; then the process ends. (Unlike the verb pass, schedule makes none while the policy is paused.)")
			}
		case "SYNCPASS_RENDERED_INTERVAL":
			put(v, "value", text(short(interval)))
		}
		all = append(all, v)
	}
	return all
}

func variable(name string, value *yaml.Node) *yaml.Node { return mapping("name", name, "value", value) }

func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// short is a duration as a person writes it, 5m and not 5m0s.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
