package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/syncpass/syncpass/e2e/scenario"
	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/record"
)

var updateFlag = flag.Bool("update", false, "record what the API servers return into pass/kinds/testdata anew")

// recordedFile holds what real API servers return for each row, for the unit tests of pass/kinds.
const recordedFile = "../pass/kinds/testdata/recorded.json"

// kindRow is an object as a tenant's user writes it, and what the two API servers make of it and of its mirror.
type kindRow struct {
	kind     kinds.Kind
	resource schema.GroupVersionResource
	written  *unstructured.Unstructured

	TenantObject *unstructured.Unstructured `json:"tenant"`
	HostObject   *unstructured.Unstructured `json:"host"`
}

// name is the row's in messages and in the recording.
func (r *kindRow) name() string { return r.kind.Name() + " " + r.written.GetName() }

// readKindRows reads testdata/kinds. Every kind with rules of its own must have a row, so that none is forgotten.
func readKindRows(t *testing.T) []*kindRow {
	t.Helper()
	files, err := filepath.Glob("testdata/kinds/*.yaml")
	require.NoError(t, err)
	var rows []*kindRow
	covered := map[schema.GroupKind]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
			document, err := reader.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			written := &unstructured.Unstructured{}
			require.NoError(t, yaml.Unmarshal(document, &written.Object), "%s:\n%s", file, document)
			written.SetNamespace(metav1.NamespaceDefault)
			gvk := written.GroupVersionKind()
			resource, _ := meta.UnsafeGuessKindToResource(gvk)
			rows = append(rows, &kindRow{kind: kinds.For(gvk.GroupKind()), resource: resource, written: written})
			covered[gvk.GroupKind()] = true
		}
	}
	for _, kind := range kinds.BuiltIn() {
		require.True(t, covered[kind], "testdata/kinds has no row for %s, which has rules of its own", kind)
	}
	return rows
}

// TestEveryBuiltInKindCrossesAndComesBack creates objects that use many fields of their kinds in a real tenant, lets the
// binary make their mirrors on a real host, and then asks of each pair, over what both API servers have made of it, that
// there is nothing left to carry either way, and that both would take the next change.
func TestEveryBuiltInKindCrossesAndComesBack(t *testing.T) {
	rows := readKindRows(t)
	s := suite(t)
	var resources []any
	listed := map[string]bool{}
	for _, row := range rows {
		if apiVersion, kind := row.written.GetAPIVersion(), row.written.GetKind(); !listed[kind] {
			listed[kind] = true
			resources = append(resources, map[string]any{"apiVersion": apiVersion, "kind": kind, "direction": "toHost"})
		}
	}
	layPolicy(t, s, scenario.Object{"resources": resources})
	awaitServiceAccounts(t, s)
	tenant, host := dynamic.NewForConfigOrDie(s.tenant.Config), dynamic.NewForConfigOrDie(s.host.Config)

	strict := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, FieldManager: "kubectl-create"}
	for _, row := range rows {
		_, err := tenant.Resource(row.resource).Namespace(metav1.NamespaceDefault).Create(t.Context(), row.written, strict)
		require.NoError(t, err, "the row %q is no object that a user can make", row.name())
	}
	passUntilQuiet(t, s)

	for _, row := range rows {
		t.Run(row.name(), func(t *testing.T) {
			if _, refused := row.kind.(kinds.Refuses); refused {
				mirrors, err := host.Resource(row.resource).Namespace("team-dev").List(t.Context(), metav1.ListOptions{})
				require.NoError(t, err)
				require.Empty(t, mirrors.Items)
				return
			}
			pair := kindPair{row: row, tenant: tenant.Resource(row.resource).Namespace(metav1.NamespaceDefault), host: host.Resource(row.resource).Namespace("team-dev")}
			pair.read(t)
			pair.requireAgreement(t)
			pair.requireHostTakesAChange(t)
			pair.requireTenantTakesAChange(t)
		})
	}
	if !t.Failed() {
		compareRecording(t, rows)
	}
}

// awaitServiceAccounts waits for the ServiceAccounts that Pods need on either side, which a controller makes in its own
// time.
func awaitServiceAccounts(t *testing.T, s *surroundings) {
	t.Helper()
	tenant, host := kubernetes.NewForConfigOrDie(s.tenant.Config), kubernetes.NewForConfigOrDie(s.host.Config)
	require.NoError(t, wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, inTenant := tenant.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		_, onHost := host.CoreV1().ServiceAccounts("team-dev").Get(ctx, "default", metav1.GetOptions{})
		return inTenant == nil && onHost == nil, nil
	}))
}

// passUntilQuiet makes passes until one has nothing left to do. It takes several where controllers have something to say
// in between. Only what belongs to a kind that never crosses may be skipped.
func passUntilQuiet(t *testing.T, s *surroundings) {
	t.Helper()
	const most = 10
	for range most {
		result, _ := onePass(t, s, map[string]string{"SYNCPASS_TENANT_API_ENDPOINT": "tenant.example.com:6443"})
		for _, decision := range result.Decisions {
			if decision.Action == record.Skip {
				_, refused := kinds.For(schema.GroupKind{Group: schema.FromAPIVersionAndKind(decision.APIVersion, "").Group, Kind: decision.Kind}).(kinds.Refuses)
				require.True(t, refused, "%+v", decision)
			}
		}
		if result.Counts.Create+result.Counts.Update+result.Counts.Delete == 0 {
			return
		}
	}
	require.FailNow(t, "the passes do not come to rest", "after %d of them", most)
}

// kindPair is a row's two objects, and where they are.
type kindPair struct {
	row          *kindRow
	mapping      kinds.Mapping
	tenant, host dynamic.ResourceInterface
}

// read fetches both objects.
func (p *kindPair) read(t *testing.T) {
	t.Helper()
	p.mapping = kinds.Mapping{Tenant: "dev", HostNamespace: "team-dev", Workloads: kinds.Workloads{ServiceAccount: "default"}}
	name := p.row.written.GetName()
	var err error
	p.row.TenantObject, err = p.tenant.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	p.row.HostObject, err = p.host.Get(t.Context(), p.mapping.MirrorName(p.row.kind, metav1.NamespaceDefault, name), metav1.GetOptions{})
	require.NoError(t, err)
	require.Len(t, p.row.HostObject.GetOwnerReferences(), 1)
	p.mapping.Owner = p.row.HostObject.GetOwnerReferences()[0]
}

// requireAgreement: what the host's API server has made of the projection is no difference, and the way back changes
// nothing.
func (p *kindPair) requireAgreement(t *testing.T) {
	t.Helper()
	kind, tenant, host := p.row.kind, p.row.TenantObject, p.row.HostObject
	_, owned := p.mapping.Identify(kind, kind.Name(), host)
	require.Equal(t, kinds.Ours, owned)
	for _, keep := range []kinds.Keep{kinds.KeepForeign, kinds.KeepNone} {
		want := p.mapping.Project(kind, tenant, host, keep)
		require.Empty(t, kinds.Difference(kinds.ContentOf(kind, record.Host, host), kinds.ContentOf(kind, record.Host, want)))
		require.Empty(t, kind.Immutable(host.Object, want.Object))
	}
	back := p.mapping.Reflect(kind, host, tenant)
	require.Empty(t, kinds.Difference(kinds.ContentOf(kind, record.Tenant, tenant), kinds.ContentOf(kind, record.Tenant, back)))
	for _, finalizer := range p.row.written.GetFinalizers() { // B11
		require.Contains(t, tenant.GetFinalizers(), finalizer)
		require.NotContains(t, host.GetFinalizers(), finalizer, "finalizers never cross")
	}
}

// requireHostTakesAChange: the host's API server accepts the projection of a tenant object that changed, as it stands.
func (p *kindPair) requireHostTakesAChange(t *testing.T) {
	t.Helper()
	kind, changed := p.row.kind, p.row.TenantObject.DeepCopy()
	mark(changed)
	want := p.mapping.Project(kind, changed, p.row.HostObject, kinds.KeepForeign)
	stored, err := p.host.Update(t.Context(), want, dryUpdate)
	require.NoError(t, err)
	require.Empty(t, kinds.Difference(kinds.ContentOf(kind, record.Host, want), kinds.ContentOf(kind, record.Host, stored)), "it is stored as projected")
	require.Equal(t, "yes", stored.GetLabels()["changed"])
}

// requireTenantTakesAChange is the same for the way back.
func (p *kindPair) requireTenantTakesAChange(t *testing.T) {
	t.Helper()
	kind, changed := p.row.kind, p.row.HostObject.DeepCopy()
	mark(changed)
	want := p.mapping.Reflect(kind, changed, p.row.TenantObject)
	stored, err := p.tenant.Update(t.Context(), want, dryUpdate)
	require.NoError(t, err)
	require.Empty(t, kinds.Difference(kinds.ContentOf(kind, record.Tenant, want), kinds.ContentOf(kind, record.Tenant, stored)), "it is stored as reflected")
	require.Equal(t, "yes", stored.GetLabels()["changed"])
}

var dryUpdate = metav1.UpdateOptions{
	DryRun: []string{metav1.DryRunAll}, FieldManager: kinds.FieldManager, FieldValidation: metav1.FieldValidationStrict,
}

func mark(object *unstructured.Unstructured) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels["changed"] = "yes"
	object.SetLabels(labels)
}

// volatile is what differs from one run to the next, and what stands for it in the recording.
var volatile = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`"resourceVersion":"\d+"`), `"resourceVersion":"1"`},
	{regexp.MustCompile(`"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ"`), `"2026-01-01T00:00:00Z"`},
	{regexp.MustCompile(`"10\.\d+\.\d+\.\d+"`), `"10.0.0.9"`}, // of Services
	{regexp.MustCompile(`//10\.\d+\.\d+\.\d+:`), `//10.0.0.9:`},
	{regexp.MustCompile(`kube-api-access-[a-z0-9]{5}"`), `kube-api-access-00000"`},
	{regexp.MustCompile(`-tokens-[a-z2-7]{16}"`), `-tokens-0000000000000000"`},
}

var uuid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// settled is a row in JSON, with what differs from run to run put right.
func settled(t *testing.T, row *kindRow) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(row)
	require.NoError(t, err)
	for _, one := range volatile {
		text = one.pattern.ReplaceAll(text, []byte(one.instead))
	}
	text = bytes.ReplaceAll(text, []byte(row.TenantObject.GetUID()), []byte("t-uid"))
	text = bytes.ReplaceAll(text, []byte(row.HostObject.GetUID()), []byte("h-uid"))
	return uuid.ReplaceAll(text, []byte("owner"))
}

// compareRecording compares the content of what the API servers returned with what the unit tests run over, or records it.
// Allocations, status and managedFields are recorded, and free to differ.
func compareRecording(t *testing.T, rows []*kindRow) {
	t.Helper()
	now := map[string]json.RawMessage{}
	crossing := map[string]*kindRow{}
	for _, row := range rows {
		if row.HostObject != nil {
			now[row.name()] = settled(t, row)
			crossing[row.name()] = row
		}
	}
	if *updateFlag {
		writeRecording(t, now)
	}
	recorded := map[string]json.RawMessage{}
	text, err := os.ReadFile(recordedFile)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &recorded))
	const again = "record them anew with go test ./e2e -run TestEveryBuiltInKind -update"
	require.Equal(t, slices.Sorted(maps.Keys(now)), slices.Sorted(maps.Keys(recorded)), again)
	for name, row := range crossing {
		for i, side := range []record.Side{record.Tenant, record.Host} {
			content := func(raw json.RawMessage) kinds.Content {
				pair := struct{ Tenant, Host *unstructured.Unstructured }{}
				require.NoError(t, json.Unmarshal(raw, &pair))
				content := kinds.ContentOf(row.kind, side, []*unstructured.Unstructured{pair.Tenant, pair.Host}[i])
				delete(content, "status")
				return content
			}
			assert.Equal(t, content(recorded[name]), content(now[name]), "%s in the %s: %s", name, side, again)
		}
	}
}

// writeRecording writes one row a line, so that a change of one is a change of one line.
func writeRecording(t *testing.T, rows map[string]json.RawMessage) {
	t.Helper()
	var text bytes.Buffer
	text.WriteString("{\n")
	for i, name := range slices.Sorted(maps.Keys(rows)) {
		if i > 0 {
			text.WriteString(",\n")
		}
		key, err := json.Marshal(name)
		require.NoError(t, err)
		text.Write(key)
		text.WriteString(": ")
		text.Write(rows[name])
	}
	text.WriteString("\n}\n")
	require.NoError(t, os.WriteFile(recordedFile, text.Bytes(), 0o644))
}
