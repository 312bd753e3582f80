package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

var syncDecisions = policy.GroupVersion.WithResource("syncdecisions")

const examplePolicy = `
apiVersion: tenantplane.io/v1alpha1
kind: SyncPolicy
metadata:
  name: default
spec:
  conflictPolicy: manual
  driftDetection:
    enabled: true
    interval: 30s
  explain:
    recordDecisions: true
    retain: 1000
  resources:
    - apiVersion: v1
      kind: Pod
      direction: toHost
    - apiVersion: v1
      kind: Service
      direction: bidirectional
    - apiVersion: v1
      kind: ConfigMap
      direction: bidirectional
    - apiVersion: v1
      kind: Secret
      direction: bidirectional
`

// dryCreate has the API server judge and default an object as if it were created, with the strictness of kubectl.
func dryCreate(ctx context.Context, t *testing.T, resource schema.GroupVersionResource, namespace, manifest string) (*unstructured.Unstructured, error) {
	t.Helper()
	client, err := dynamic.NewForConfig(suite(t).host.Config)
	require.NoError(t, err)
	object := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(manifest), &object.Object))
	// Another name than the policy that the scenarios use.
	object.SetName("crd-test")
	options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
	return client.Resource(resource).Namespace(namespace).Create(ctx, object, options)
}

// policyWith is a manifest with this spec, given in one line.
func policyWith(spec string) string {
	return "apiVersion: tenantplane.io/v1alpha1\nkind: SyncPolicy\nmetadata: {name: crd-test}\nspec: {" + spec + "}\n"
}

const oneKind = "resources: [{apiVersion: v1, kind: ConfigMap, direction: toHost}]"

func TestTheAPIServerTakesAndDefaultsAPolicyAsParseDoes(t *testing.T) {
	for name, manifest := range map[string]string{
		"the example": examplePolicy,
		"what narrows a kind, and what it refers to": policyWith("resources: [{apiVersion: example.com/v1, kind: Widget, direction: toHost, references: [{path: spec.a, kind: Secret}, {path: 'spec.rules[*].b[\"x/y\"]', kind: Bucket, apiVersion: example.com/v1}], selector: {matchLabels: {a: b}, matchExpressions: [{key: c, operator: Exists}]}, namespaces: [default, a]}]"),
		"nothing but resources":                      policyWith(oneKind),
		"groups of fields that are empty":            policyWith(oneKind + ", driftDetection: {}, explain: {}"),
		"the schedule paused":                        policyWith(oneKind + ", driftDetection: {enabled: false}"),
		"no trail":                                   policyWith(oneKind + ", explain: {recordDecisions: true, retain: 0}"),
		"the longest trail":                          policyWith(oneKind + ", explain: {retain: 10000}"),
		"an interval of a second":                    policyWith(oneKind + ", driftDetection: {interval: 1000ms}"),
		"an interval with a fraction":                policyWith(oneKind + ", driftDetection: {interval: 1.5s}"),
		"an interval of several units":               policyWith(oneKind + ", driftDetection: {interval: +1h2m3.s4ms5us6µs7ns}"),
		"one kind name in two groups":                policyWith("resources: [{apiVersion: v1, kind: Event2, direction: toHost}, {apiVersion: example.com/v1, kind: Event2, direction: fromHost}]"),
		"another group's Role":                       policyWith("resources: [{apiVersion: example.com/v1, kind: Role, direction: toHost}]"),
		"nodes from the host":                        policyWith("resources: [{apiVersion: v1, kind: Node, direction: fromHost}]"),
		"a cluster-scoped kind":                      policyWith("resources: [{apiVersion: v1, kind: Namespace, direction: toHost}]"),
		"as many kinds as a policy can name":         policyWith("resources: [" + manyKinds(policy.MaxResources) + "]"),
	} {
		t.Run(name, func(t *testing.T) {
			object, err := dryCreate(t.Context(), t, policy.SyncPolicyResource, "", manifest)
			require.NoError(t, err)
			fromAPI, err := policy.FromObject(object.Object)
			require.NoError(t, err)
			fromFile, err := policy.Parse([]byte(manifest))
			require.NoError(t, err)
			assert.Equal(t, fromFile.Spec, fromAPI.Spec)

			var stored policy.SyncPolicy
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &stored))
			assert.Equal(t, fromFile.Spec, stored.Spec, "the API server fills in other defaults")
		})
	}
}

func manyKinds(count int) string {
	kinds := make([]string, count)
	for i := range kinds {
		kinds[i] = fmt.Sprintf("{apiVersion: group%d.example.com/v1, kind: Kind%d, direction: toHost}", i, i)
	}
	return strings.Join(kinds, ", ")
}

// badField is a policy with one fault.
type badField struct {
	// spec of the policy, and the path of the field at fault.
	spec, path string
	// serverPath is where the API server sees the fault, if elsewhere.
	serverPath string
}

func reservedKind(apiVersion, kind string) badField {
	return badField{
		spec:       fmt.Sprintf("resources: [{apiVersion: %s, kind: %s, direction: toHost}]", apiVersion, kind),
		path:       "spec.resources[0].kind",
		serverPath: "spec.resources[0]",
	}
}

// TestTheAPIServerRefusesEachBadFieldAsParseDoes: both name the same field.
func TestTheAPIServerRefusesEachBadFieldAsParseDoes(t *testing.T) {
	widget := func(more string) string {
		return "resources: [{apiVersion: example.com/v1, kind: Widget, direction: toHost, " + more + "}]"
	}
	for name, test := range map[string]badField{
		"a reference to metadata":       {spec: widget("references: [{path: metadata.name, kind: Secret}]"), path: "spec.resources[0].references[0].path"},
		"a path that is none":           {spec: widget("references: [{path: spec..a, kind: Secret}]"), path: "spec.resources[0].references[0].path"},
		"a reference without a kind":    {spec: widget("references: [{path: spec.a}]"), path: "spec.resources[0].references[0].kind"},
		"one path twice":                {spec: widget("references: [{path: spec.a, kind: Secret}, {path: spec.a, kind: ConfigMap}]"), path: "spec.resources[0].references[1].path", serverPath: "spec.resources[0].references[1]"},
		"references of a Secret":        {spec: "resources: [{apiVersion: v1, kind: Secret, direction: toHost, references: [{path: data.a, kind: Secret}]}]", path: "spec.resources[0].references", serverPath: "spec.resources[0]"},
		"a Node by its labels":          {spec: "resources: [{apiVersion: v1, kind: Node, direction: fromHost, selector: {}}]", path: "spec.resources[0].selector", serverPath: "spec.resources[0]"},
		"a label that is a number":      {spec: widget("selector: {matchLabels: {a: 1}}"), path: "spec.resources[0].selector.matchLabels.a"},
		"no namespaces":                 {spec: widget("namespaces: []"), path: "spec.resources[0].namespaces"},
		"a namespace twice":             {spec: widget("namespaces: [a, a]"), path: "spec.resources[0].namespaces[1]"},
		"a namespace that is a pattern": {spec: widget("namespaces: ['a-*']"), path: "spec.resources[0].namespaces[0]"},
		"unknown conflictPolicy":        {spec: oneKind + ", conflictPolicy: newest", path: "spec.conflictPolicy"},
		"conflictPolicy no string":      {spec: oneKind + ", conflictPolicy: 1", path: "spec.conflictPolicy"},
		"enabled no boolean":            {spec: oneKind + `, driftDetection: {enabled: "yes"}`, path: "spec.driftDetection.enabled"},
		"interval a number":             {spec: oneKind + ", driftDetection: {interval: 30}", path: "spec.driftDetection.interval"},
		"interval without a unit":       {spec: oneKind + `, driftDetection: {interval: "30"}`, path: "spec.driftDetection.interval"},
		"interval in days":              {spec: oneKind + ", driftDetection: {interval: 1d}", path: "spec.driftDetection.interval"},
		"interval empty":                {spec: oneKind + `, driftDetection: {interval: ""}`, path: "spec.driftDetection.interval"},
		"interval below a second":       {spec: oneKind + ", driftDetection: {interval: 999ms}", path: "spec.driftDetection.interval"},
		"interval zero":                 {spec: oneKind + ", driftDetection: {interval: 0s}", path: "spec.driftDetection.interval"},
		"interval negative":             {spec: oneKind + ", driftDetection: {interval: -30s}", path: "spec.driftDetection.interval"},
		"interval of ten billion hours": {spec: oneKind + ", driftDetection: {interval: 10000000000h}", path: "spec.driftDetection.interval"},
		"recordDecisions no boolean":    {spec: oneKind + ", explain: {recordDecisions: 1}", path: "spec.explain.recordDecisions"},
		"retain negative":               {spec: oneKind + ", explain: {retain: -1}", path: "spec.explain.retain"},
		"retain too large":              {spec: oneKind + ", explain: {retain: 10001}", path: "spec.explain.retain"},
		"retain a string":               {spec: oneKind + `, explain: {retain: "10"}`, path: "spec.explain.retain"},
		"resources missing":             {spec: "conflictPolicy: manual", path: "spec.resources"},
		"resources empty":               {spec: "resources: []", path: "spec.resources"},
		"resources no list":             {spec: "resources: {}", path: "spec.resources"},
		"too many resources":            {spec: "resources: [" + manyKinds(policy.MaxResources+1) + "]", path: "spec.resources"},
		"apiVersion missing":            {spec: "resources: [{kind: Pod, direction: toHost}]", path: "spec.resources[0].apiVersion"},
		"apiVersion unparsable":         {spec: "resources: [{apiVersion: apps/v1/x, kind: Pod, direction: toHost}]", path: "spec.resources[0].apiVersion"},
		"kind missing":                  {spec: "resources: [{apiVersion: v1, direction: toHost}]", path: "spec.resources[0].kind"},
		"kind empty":                    {spec: `resources: [{apiVersion: v1, kind: "", direction: toHost}]`, path: "spec.resources[0].kind"},
		"kind qualified":                {spec: "resources: [{apiVersion: v1, kind: Pod.core, direction: toHost}]", path: "spec.resources[0].kind"},
		"direction missing":             {spec: "resources: [{apiVersion: v1, kind: Pod}]", path: "spec.resources[0].direction"},
		"direction unknown":             {spec: "resources: [{apiVersion: v1, kind: Pod, direction: sideways}]", path: "spec.resources[0].direction"},
		"a kind twice":                  {spec: "resources: [{apiVersion: v1, kind: Pod, direction: toHost}, {apiVersion: v1, kind: Pod, direction: fromHost}]", path: "spec.resources[1]"},
		"a kind in two versions": {
			spec: "resources: [{apiVersion: apps/v1, kind: Deployment, direction: toHost}, {apiVersion: apps/v1beta1, kind: Deployment, direction: toHost}]",
			path: "spec.resources[1]", serverPath: "spec.resources"},
		"a kind of syncpass itself": reservedKind("tenantplane.io/v1alpha1", "TenantCluster"),
		"Role":                      reservedKind("rbac.authorization.k8s.io/v1", "Role"),
		"RoleBinding":               reservedKind("rbac.authorization.k8s.io/v1", "RoleBinding"),
		"Lease":                     reservedKind("coordination.k8s.io/v1", "Lease"),
		"ControllerRevision":        reservedKind("apps/v1", "ControllerRevision"),
		"core Event":                reservedKind("v1", "Event"),
		"Event":                     reservedKind("events.k8s.io/v1", "Event"),
		"Node to the host": {
			spec: "resources: [{apiVersion: v1, kind: Node, direction: toHost}]", path: "spec.resources[0].direction", serverPath: "spec.resources[0]"},
		// The API server drops a field it does not know, unless it is asked to be strict, as kubectl does.
		"unknown field":               {spec: oneKind + ", resorces: []", path: "spec.resorces"},
		"unknown field of a resource": {spec: "resources: [{apiVersion: v1, kind: Pod, direction: toHost, group: x}]", path: "spec.resources[0].group"},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := policyWith(test.spec)
			_, err := policy.Parse([]byte(manifest))
			var invalid *policy.InvalidError
			require.ErrorAs(t, err, &invalid)
			require.Len(t, invalid.Faults, 1)
			assert.Equal(t, test.path, invalid.Faults[0].Field)

			_, err = dryCreate(t.Context(), t, policy.SyncPolicyResource, "", manifest)
			require.Error(t, err)
			assert.True(t, apierrors.IsInvalid(err) || apierrors.IsBadRequest(err), "%v", err)
			want := test.serverPath
			if want == "" {
				want = test.path
			}
			assert.Contains(t, err.Error(), want)
		})
	}
}

func TestATenantClusterKeepsTheFieldsOfOtherTools(t *testing.T) {
	object, err := dryCreate(t.Context(), t, policy.TenantClusterResource, "default", `
apiVersion: tenantplane.io/v1alpha1
kind: TenantCluster
metadata: {name: crd-test}
spec:
  syncPolicyRef: {name: default, uid: x}
  version: "1.37"
  addons: [{name: dns, replicas: 2}]
`)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{
		"syncPolicyRef": map[string]any{"name": "default", "uid": "x"},
		"version":       "1.37",
		"addons":        []any{map[string]any{"name": "dns", "replicas": int64(2)}},
	}, object.Object["spec"])

	for name, manifest := range map[string]string{
		"no spec":   "{apiVersion: tenantplane.io/v1alpha1, kind: TenantCluster, metadata: {name: crd-test}}",
		"no policy": "{apiVersion: tenantplane.io/v1alpha1, kind: TenantCluster, metadata: {name: crd-test}, spec: {version: x}}",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := dryCreate(t.Context(), t, policy.TenantClusterResource, "default", manifest)
			assert.NoError(t, err)
		})
	}
	_, err = dryCreate(t.Context(), t, policy.TenantClusterResource, "default",
		"{apiVersion: tenantplane.io/v1alpha1, kind: TenantCluster, metadata: {name: crd-test}, spec: {syncPolicyRef: default}}")
	assert.True(t, apierrors.IsInvalid(err), "%v", err)
	assert.ErrorContains(t, err, "spec.syncPolicyRef")
}

// fullStatus is a SyncDecision's status with every field set, some as long as they may be.
func fullStatus() record.SyncDecisionStatus {
	now := metav1.NewMicroTime(time.Now().Truncate(time.Microsecond))
	return record.SyncDecisionStatus{
		LastPass: &record.LastPass{
			ID: "p1", StartTime: now, EndTime: now, Outcome: record.CompletedWithErrors, Message: "one object failed",
			Counts: record.Counts{Create: 1, Update: 2, Delete: 3, Skip: 4, Unchanged: 5, Error: 1, Requests: 12},
		},
		Conflicts: 6, Pairs: 7, Epoch: 8, ReservedBy: "p1",
		Entries: []record.Entry{{
			Time: now, Action: record.Skip, Side: record.Host, APIVersion: "v1", Kind: "ConfigMap",
			TenantNamespace: strings.Repeat("n", 63), TenantName: strings.Repeat("n", 253),
			HostNamespace: "team-dev", HostName: strings.Repeat("n", 253),
			Reason: record.Rejected, Message: strings.Repeat("m", 1000), Error: strings.Repeat("e", 1000),
			Fields: []string{"data.a"}, PassID: "p1", Count: 2, LastTime: &now,
		}},
		Tenant:  &record.TenantIdentity{UID: "5e4b1f3c-0000-4000-8000-000000000000"},
		History: &record.Page{Of: 1, Index: 0, Format: record.Format, KeyID: "k", Data: make([]byte, record.MaxPageSize/4*3)},
	}
}

func TestTheAPIServerKeepsAndShowsASyncDecision(t *testing.T) {
	s, ctx := suite(t), t.Context()
	dynamicClient, err := dynamic.NewForConfig(s.host.Config)
	require.NoError(t, err)
	client := dynamicClient.Resource(syncDecisions).Namespace("default")
	object, err := client.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": policy.GroupVersion.String(), "kind": "SyncDecision", "metadata": map[string]any{"name": "crd-test"},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, client.Delete(context.WithoutCancel(ctx), "crd-test", metav1.DeleteOptions{}))
	})

	status := fullStatus()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&record.SyncDecision{Status: status})
	require.NoError(t, err)
	object.Object["status"] = content["status"]
	object, err = client.UpdateStatus(ctx, object, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
	require.NoError(t, err)
	var stored record.SyncDecision
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &stored))
	// Times come back in UTC.
	storedContent, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&record.SyncDecision{Status: stored.Status})
	require.NoError(t, err)
	assert.Equal(t, content["status"], storedContent["status"])

	t.Run("as columns", func(t *testing.T) {
		kubernetesClient, err := kubernetes.NewForConfig(s.host.Config)
		require.NoError(t, err)
		answer, err := kubernetesClient.Discovery().RESTClient().Get().
			AbsPath("/apis/tenantplane.io/v1alpha1/namespaces/default/syncdecisions/crd-test").
			SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(ctx).Raw()
		require.NoError(t, err)
		var table metav1.Table
		require.NoError(t, yaml.Unmarshal(answer, &table))
		require.Len(t, table.Rows, 1)
		cells := map[string]any{}
		for i, column := range table.ColumnDefinitions {
			cells[column.Name] = table.Rows[0].Cells[i]
		}
		assert.Regexp(t, `^[0-9]+(s|m[0-9]*s?)$`, cells["When"])
		delete(cells, "When")
		assert.Equal(t, map[string]any{
			"Name": "crd-test", "Outcome": "CompletedWithErrors", "Created": 1.0, "Updated": 2.0, "Deleted": 3.0, "Skipped": 4.0,
			"Conflicts": 6.0, "Pairs": 7.0,
		}, cells)
	})

	for name, test := range map[string]struct {
		value any
		path  []string
	}{
		"an outcome that there is not": {"Fine", []string{"status", "lastPass", "outcome"}},
		"a negative count":             {int64(-1), []string{"status", "lastPass", "counts", "delete"}},
		"a negative epoch":             {int64(-1), []string{"status", "epoch"}},
		"a page that is not base64":    {"%", []string{"status", "history", "data"}},
		"a page of a mebibyte":         {strings.Repeat("AAAA", 1<<18), []string{"status", "history", "data"}},
		"a field that there is not":    {"x", []string{"status", "note"}},
		"entries that are no list":     {"x", []string{"status", "entries"}},
	} {
		t.Run("without "+name, func(t *testing.T) {
			bad := object.DeepCopy()
			require.NoError(t, unstructured.SetNestedField(bad.Object, test.value, test.path...))
			_, err := client.UpdateStatus(ctx, bad, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
			require.Error(t, err)
			assert.True(t, apierrors.IsInvalid(err) || apierrors.IsBadRequest(err), "%v", err)
			assert.Contains(t, err.Error(), strings.Join(test.path, "."))
		})
	}
}
