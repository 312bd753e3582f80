package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/syncpass/syncpass/record"
)

// reportingController names syncpass in Events.
const reportingController = "syncpass"

// Recorder writes one Event per decision on a TenantCluster, and returns when they are written: client-go's broadcaster
// hands them to a goroutine, drops what comes too fast, and loses what is not sent when the process ends.
type Recorder struct {
	events      corev1client.EventInterface
	about       corev1.ObjectReference
	instance    string
	concurrency int
}

// NewRecorder is the Recorder of the TenantCluster that owner refers to, in its namespace. Instance names this process;
// concurrency (at least 1) is how many Events are sent at once.
func NewRecorder(events corev1client.EventsGetter, namespace string, owner metav1.OwnerReference, instance string, concurrency int) *Recorder {
	return &Recorder{
		events: events.Events(namespace),
		about: corev1.ObjectReference{
			APIVersion: owner.APIVersion,
			Kind:       owner.Kind,
			Namespace:  namespace,
			Name:       owner.Name,
			UID:        owner.UID,
		},
		instance:    instance,
		concurrency: max(1, concurrency),
	}
}

// MaxEvents is how many Events one pass writes at the most: a tenant that changes all it has between any two passes must
// not fill the host with them.
const MaxEvents = 1000

// Record writes the Events of entries: new ones, and those of standing skips that were refreshed (their LastTime is
// set), of which the count and time of the Event there is are brought up to date. Of more than MaxEvents, Warnings come
// first. An Event that is there already is none to write, so that calling Record again is harmless. It tries all entries
// until ctx ends, and joins the errors in the order of the entries.
func (r *Recorder) Record(ctx context.Context, entries ...record.Entry) error {
	var tooMany error
	if more := len(entries) - MaxEvents; more > 0 {
		entries = slices.SortedStableFunc(slices.Values(entries), func(a, b record.Entry) int {
			return -cmp.Compare(eventType(a), eventType(b)) // Warning is behind Normal
		})[:MaxEvents]
		tooMany = fmt.Errorf("%d Events were not written: a pass writes at most %d", more, MaxEvents)
	}
	var group errgroup.Group
	group.SetLimit(r.concurrency)
	errs := make([]error, len(entries))
	for i, e := range entries {
		if ctx.Err() != nil {
			errs[i] = fmt.Errorf("%d Events were not written: %w", len(entries)-i, context.Cause(ctx))
			break
		}
		group.Go(func() error {
			if err := r.write(ctx, e); err != nil {
				errs[i] = fmt.Errorf("writing the Event of %s of %s %s/%s: %w", e.Reason, e.Kind, e.TenantNamespace, e.TenantName, err)
			}
			return nil
		})
	}
	_ = group.Wait() // the functions return none
	return errors.Join(append(errs, tooMany)...)
}

func (r *Recorder) write(ctx context.Context, e record.Entry) error {
	event := r.eventOf(e)
	_, err := r.events.Create(ctx, event, metav1.CreateOptions{FieldManager: fieldManager})
	if !apierrors.IsAlreadyExists(err) || e.LastTime == nil {
		return ignore(err, apierrors.IsAlreadyExists)
	}
	patch, err := json.Marshal(map[string]any{"count": event.Count, "lastTimestamp": event.LastTimestamp})
	if err != nil {
		return err
	}
	_, err = r.events.Patch(ctx, event.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	return ignore(err, apierrors.IsNotFound) // Events expire
}

func ignore(err error, harmless func(error) bool) error {
	if harmless(err) {
		return nil
	}
	return err
}

func (r *Recorder) eventOf(e record.Entry) *corev1.Event {
	first := metav1.NewTime(e.Time.Time)
	last := first
	if e.LastTime != nil {
		last = metav1.NewTime(e.LastTime.Time)
	}
	event := &corev1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: r.about.Namespace, Name: eventName(r.about.Name, e)},
		InvolvedObject:      r.about,
		Type:                eventType(e),
		Reason:              string(e.Reason),
		Action:              string(e.Action),
		Message:             eventMessage(e),
		Source:              corev1.EventSource{Component: reportingController},
		ReportingController: reportingController,
		ReportingInstance:   r.instance,
		FirstTimestamp:      first,
		LastTimestamp:       last,
		Count:               max(1, e.Count),
	}
	if e.HostName != "" {
		event.Related = &corev1.ObjectReference{APIVersion: e.APIVersion, Kind: e.Kind, Namespace: e.HostNamespace, Name: e.HostName}
	}
	return event
}

// eventName is the same for the same decision of the same pass, so that no retry writes it twice.
func eventName(about string, e record.Entry) string {
	d := sha256.New()
	for _, s := range []string{
		e.PassID, string(e.Action), string(e.Side), e.APIVersion, e.Kind, e.TenantNamespace, e.TenantName, e.HostName, string(e.Reason),
	} {
		fmt.Fprintf(d, "%d:%s", len(s), s)
	}
	hash := hex.EncodeToString(d.Sum(nil)[:10])
	return strings.TrimRight(about[:min(len(about), 253-len(hash)-1)], ".-") + "." + hash
}

// eventMessage names the pair, since the Event is on the TenantCluster.
func eventMessage(e record.Entry) string {
	pair := e.Kind
	if e.TenantName != "" {
		pair += " " + e.TenantNamespace + "/" + e.TenantName
	}
	text := pair + ": " + cmp.Or(e.Message, string(e.Reason))
	if e.Error != "" {
		text += ": " + e.Error
	}
	return record.Plain(text, record.MaxMessage)
}

// eventType: what a person should look at, or what failed, is a Warning.
func eventType(e record.Entry) string {
	if e.Action != record.Skip && e.Error == "" {
		return corev1.EventTypeNormal
	}
	switch e.Reason {
	case record.Raced, record.Terminating, record.NotAttempted:
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}
