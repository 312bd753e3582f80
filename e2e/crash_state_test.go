package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/syncpass/syncpass/e2e/proxy"
	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/record"
)

var pods = corev1.SchemeGroupVersion.WithResource("pods")

// crossing are the resources that the starting points are made of.
var crossing = []schema.GroupVersionResource{configMaps, secrets, services, pods}

var sides = []record.Side{record.Host, record.Tenant}

// notCrossing selects what is in a place of itself: what every namespace has, and what newPlace makes.
func (p *place) notCrossing() string {
	return fields.AndSelectors(
		fields.OneTermNotEqualSelector("metadata.name", "kube-root-ca.crt"),
		fields.OneTermNotEqualSelector("metadata.name", p.name+"-kubeconfig"),
	).String()
}

// look reads every object of the place, by its name: host/Secret/name.
func (p *place) look(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	found := map[string]*unstructured.Unstructured{}
	for _, side := range sides {
		for _, resource := range crossing {
			list, err := p.objects(side, resource).List(p.s.context(t), metav1.ListOptions{FieldSelector: p.notCrossing()})
			require.NoError(t, err)
			for i := range list.Items {
				found[path.Join(string(side), list.Items[i].GetKind(), list.Items[i].GetName())] = &list.Items[i]
			}
		}
	}
	return found
}

// clear takes the place back to before its first pass, but for what newPlace made.
func (p *place) clear(t *testing.T) {
	t.Helper()
	ctx := p.s.context(t)
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	for _, side := range sides {
		for _, resource := range crossing {
			require.NoError(t, p.objects(side, resource).DeleteCollection(ctx, now, metav1.ListOptions{FieldSelector: p.notCrossing()}))
		}
	}
	for resource, name := range map[schema.GroupVersionResource]string{leasesResource: "syncpass-" + p.name, syncDecisions: p.name} {
		if err := p.objects(record.Host, resource).Delete(ctx, name, now); !apierrors.IsNotFound(err) {
			require.NoError(t, err)
		}
	}
}

// waitForServiceAccounts waits until Pods can be made: a controller makes the ServiceAccount that they run under.
func (p *place) waitForServiceAccounts(t *testing.T) {
	t.Helper()
	for _, side := range sides {
		err := wait.PollUntilContextTimeout(p.s.context(t), 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
			_, err := p.objects(side, corev1.SchemeGroupVersion.WithResource("serviceaccounts")).Get(ctx, "default", metav1.GetOptions{})
			return err == nil, nil
		})
		require.NoError(t, err, "the ServiceAccount default of the %s", side)
	}
}

// status is that of the place's SyncDecision, empty where there is none.
func (p *place) status(t *testing.T) record.SyncDecisionStatus {
	t.Helper()
	var decision record.SyncDecision
	data, err := json.Marshal(p.decision(t))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &decision))
	return decision.Status
}

// reservedBy is the pass that wrote last, or was about to.
func (p *place) reservedBy(t *testing.T) string { return p.status(t).ReservedBy }

// isTokens says whether an object holds the tokens of a Pod. It is a part of the Pod's mirror, which a controller removes
// with it in its own time.
func isTokens(object *unstructured.Unstructured) bool {
	return object != nil && object.GetLabels()["tenantplane.io/kind"] == "pod-tokens"
}

// changed are the names of the objects that are others in the second look, or have other content, sorted.
func changed(before, after map[string]*unstructured.Unstructured) []string {
	names := map[string]bool{}
	for _, look := range []map[string]*unstructured.Unstructured{before, after} {
		for name := range look {
			if !isTokens(look[name]) && written(before[name]) != written(after[name]) {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// written is an object as far as a pass writes it.
func written(object *unstructured.Unstructured) string {
	if object == nil {
		return ""
	}
	object = object.DeepCopy()
	object.SetResourceVersion("")
	object.SetManagedFields(nil)
	unstructured.RemoveNestedField(object.Object, "status")
	return fmt.Sprint(object.Object) // maps are printed sorted
}

// stateOf is what both sides look like, without what differs from one object to another that is as good: UIDs, versions,
// times, addresses. The value that the starting point was laid with becomes the same for all.
func stateOf(t *testing.T, look map[string]*unstructured.Unstructured, value string) string {
	t.Helper()
	state := map[string]string{}
	for name, found := range look {
		object := found.DeepCopy()
		annotations := object.GetAnnotations()
		if strings.HasPrefix(name, "host/") {
			of, kind := "the mirror of", object.GetKind()
			if isTokens(object) {
				of, kind = "tokens of", "Pod"
			}
			of += " " + kind + " " + annotations["tenantplane.io/virtual-name"]
			source := look[path.Join("tenant", kind, annotations["tenantplane.io/virtual-name"])]
			right := source != nil && string(source.GetUID()) == annotations["tenantplane.io/virtual-uid"]
			if isTokens(object) {
				if right {
					state[of] = "provided" // new ones each time
				}
				continue
			}
			require.True(t, right, "%s is %s that is no more", name, of)
			annotations["tenantplane.io/virtual-uid"] = "right"
			object.SetAnnotations(annotations)
		}
		for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "ownerReferences"} {
			unstructured.RemoveNestedField(object.Object, "metadata", field)
		}
		for _, field := range []string{"clusterIP", "clusterIPs"} {
			unstructured.RemoveNestedField(object.Object, "spec", field)
		}
		if object.GetKind() == "Secret" {
			decodeData(t, object)
		}
		unstructured.RemoveNestedField(object.Object, "status")
		data, err := json.MarshalIndent(object.Object, "", " ")
		require.NoError(t, err)
		text := strings.ReplaceAll(string(data), value, "VALUE")
		state[name] = suffixes.ReplaceAllString(addresses.ReplaceAllString(text, "ADDRESS"), "$1")
	}
	var text strings.Builder // in one, since a difference of texts is easy to read
	for _, name := range slices.Sorted(maps.Keys(state)) {
		fmt.Fprintln(&text, name, state[name])
	}
	return text.String()
}

var (
	addresses = regexp.MustCompile(`\b[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+\b`)
	suffixes  = regexp.MustCompile(`(kube-api-access|-tokens)-[a-z0-9]+`)
)

func decodeData(t *testing.T, secret *unstructured.Unstructured) {
	data, _, err := unstructured.NestedStringMap(secret.Object, "data")
	require.NoError(t, err)
	for key, value := range data {
		plain, err := base64.StdEncoding.DecodeString(value)
		require.NoError(t, err)
		data[key] = string(plain)
	}
	require.NoError(t, unstructured.SetNestedStringMap(secret.Object, data, "data"))
}

// requireNoSkip: nothing was held that a pass without a crash does not hold.
func (m *matrix) requireNoSkip(t *testing.T, point string, results []pass.Result) {
	t.Helper()
	for _, result := range results {
		for _, d := range result.Decisions {
			if d.Action == record.Skip && !m.from.holds[d.Kind+"/"+d.TenantName] {
				require.Fail(t, "a pass after the crash holds something", "%s: %+v", point, d)
			}
		}
	}
}

// requireExplained: the trail has an entry of one of these passes for each of these objects.
func requireExplained(t *testing.T, point string, entries []record.Entry, passes, objects []string) {
	t.Helper()
	explained := map[string]bool{}
	for _, e := range entries {
		if e.Action == record.Skip || !slices.Contains(passes, e.PassID) {
			continue
		}
		name := e.HostName
		if e.Side == record.Tenant {
			name = e.TenantName
		}
		explained[path.Join(string(e.Side), e.Kind, name)] = true
	}
	for _, name := range objects {
		require.True(t, explained[name], "%s: %s was written, and no entry of pass %s in the trail says why: %v", point, name, passes, explained)
	}
}

// appliedWrites counts the writes of objects that the API servers carried out. killedAt is the request, if any, that the
// log does not tell the answer of.
func appliedWrites(requests []proxy.Request, killedAt *proxy.Request) map[string]int {
	counts := map[string]int{}
	for _, r := range requests {
		if killedAt != nil && r.Number == killedAt.Number {
			r.Status = killedAt.Status
		}
		if r.Write && r.Status >= 200 && r.Status < 300 {
			resource := r.Path
			if r.Method != http.MethodPost {
				resource = path.Dir(resource)
			}
			counts[r.Method+" "+r.Server+" "+path.Base(resource)]++
		}
	}
	return counts
}

func isLease(r proxy.Request) bool { return strings.Contains(r.Path, "/leases") }

// isCollection says whether a request is to a collection itself.
func isCollection(r proxy.Request, resource string) bool { return path.Base(r.Path) == resource }
