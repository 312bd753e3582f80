package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// objectHost serves single objects by path, and keeps a list of the requests.
func objectHost(t *testing.T, objects map[string]any) (env environment, asked *[]string) {
	asked = &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.Method+" "+r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		object, found := objects[r.URL.Path]
		if code, refused := object.(int); refused || !found {
			reason := "Forbidden"
			if !refused {
				code, reason = http.StatusNotFound, "NotFound"
			}
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":"the host says %s"}`, code, reason, reason)
			return
		}
		_ = json.NewEncoder(w).Encode(object)
	}))
	t.Cleanup(server.Close)
	variables := map[string]string{"SYNCPASS_HOST_KUBECONFIG": writeKubeconfig(t, server.URL), "SYNCPASS_TENANT": "dev", "SYNCPASS_TENANT_CONCURRENCY": "1"}
	return func(name string) (string, bool) {
		value, found := variables[name]
		return value, found
	}, asked
}

const (
	plane     = "/apis/tenantplane.io/v1alpha1"
	inTeamDev = plane + "/namespaces/team-dev"
	leasePath = "/apis/coordination.k8s.io/v1/namespaces/team-dev/leases/syncpass-dev"
)

func plainObject(apiVersion, kind, name string, more map[string]any) map[string]any {
	object := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name, "namespace": "team-dev", "uid": "u1", "resourceVersion": "7"}}
	for key, value := range more {
		object[key] = value
	}
	return object
}

// recordedTenant are the objects of a tenant that had a pass.
func recordedTenant(at time.Time) map[string]any {
	began := at.UTC().Format("2006-01-02T15:04:05.000000Z")
	return map[string]any{
		inTeamDev + "/tenantclusters/dev": plainObject("tenantplane.io/v1alpha1", "TenantCluster", "dev", map[string]any{
			"spec": map[string]any{"syncPolicyRef": map[string]any{"name": "default"}}}),
		plane + "/syncpolicies/default": plainObject("tenantplane.io/v1alpha1", "SyncPolicy", "default", map[string]any{
			"spec": map[string]any{"driftDetection": map[string]any{"interval": "7m"},
				"resources": []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "direction": "bidirectional"}}}}),
		inTeamDev + "/syncdecisions/dev": plainObject("tenantplane.io/v1alpha1", "SyncDecision", "dev", map[string]any{"status": map[string]any{
			"lastPass": map[string]any{"id": "pass-1", "startTime": began, "endTime": began, "outcome": "Completed", "counts": map[string]any{"create": 1}},
			"entries": []any{map[string]any{"time": began, "action": "Create", "apiVersion": "v1", "kind": "ConfigMap", "tenantNamespace": "default",
				"tenantName": "app", "reason": "NoMirror", "passID": "pass-1"}}}}),
		leasePath: plainObject("coordination.k8s.io/v1", "Lease", "syncpass-dev", map[string]any{
			"spec": map[string]any{"holderIdentity": "", "leaseDurationSeconds": 30, "acquireTime": began, "renewTime": began}}),
	}
}

func reportOf(t *testing.T, env environment, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errors bytes.Buffer
	a := &app{stdout: &out, stderr: &errors, env: env}
	code = a.execute(t.Context(), append([]string{"report"}, args...))
	return code, out.String(), errors.String()
}

func TestReportReadsTheHostAlone(t *testing.T) {
	began := time.Now().Add(-time.Minute)
	env, asked := objectHost(t, recordedTenant(began))
	code, out, stderr := reportOf(t, env, "-o", "md")
	require.Equal(t, exitOK, code, stderr)
	assert.Equal(t, []string{
		"GET " + inTeamDev + "/tenantclusters/dev", "GET " + plane + "/syncpolicies/default", "GET " + inTeamDev + "/syncdecisions/dev", "GET " + leasePath,
	}, *asked)
	assert.Contains(t, out, "- Policy: `default`, conflicts: `manual`, every 7m\n")
	assert.Contains(t, out, "- Next pass due: "+began.UTC().Add(7*time.Minute).Format(time.DateTime)+" UTC (in ")
	assert.Contains(t, out, "- Last recorded: `Completed`,")
	assert.Contains(t, out, "Decisions that the trail still has: 1;")

	code, out, stderr = reportOf(t, env)
	require.Equal(t, exitOK, code, stderr)
	assert.Regexp(t, "^<!DOCTYPE html>\n", out)
	assert.Empty(t, stderr)
}

func TestWhatAReportCannotReadIsOnItAndInTheExitCode(t *testing.T) {
	for name, test := range map[string]struct {
		change    func(map[string]any)
		says, has string
	}{
		"the TenantCluster": {func(objects map[string]any) { delete(objects, inTeamDev+"/tenantclusters/dev") },
			"TenantCluster team-dev/dev does not exist on the host", "nothing recorded"},
		"the policy": {func(objects map[string]any) { delete(objects, plane+"/syncpolicies/default") },
			"(named by TenantCluster team-dev/dev) does not exist", "- Last recorded: `Completed`"},
		"the SyncDecision": {func(objects map[string]any) { objects[inTeamDev+"/syncdecisions/dev"] = http.StatusForbidden },
			"reading SyncDecision team-dev/dev", "every 7m"},
		"the Lease": {func(objects map[string]any) { objects[leasePath] = http.StatusForbidden },
			"reading lease syncpass-dev", "- Last recorded: `Completed`"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := recordedTenant(time.Now())
			test.change(objects)
			env, _ := objectHost(t, objects)
			code, out, stderr := reportOf(t, env, "-o", "md")
			assert.Equal(t, exitInvalid, code)
			assert.Contains(t, stderr, test.says)
			assert.Contains(t, out, "**Problem:** ")
			assert.Contains(t, out, test.has, "the rest is there")
		})
	}
}

func TestReportOfATenantWithoutAPass(t *testing.T) {
	objects := recordedTenant(time.Now())
	delete(objects, leasePath)
	delete(objects, inTeamDev+"/syncdecisions/dev")
	objects[inTeamDev+"/syncdecisions"] = map[string]any{"apiVersion": "tenantplane.io/v1alpha1", "kind": "SyncDecisionList",
		"metadata": map[string]any{"resourceVersion": "7"}, "items": []any{}}
	env, _ := objectHost(t, objects)
	code, out, stderr := reportOf(t, env, "-o", "md")
	require.Equal(t, exitOK, code, stderr)
	assert.Contains(t, out, "not known, since no pass has left its Lease")
	assert.Contains(t, out, "The trail has no decision.")
}

func TestReportOfAHostThatDoesNotAnswer(t *testing.T) {
	env := func(name string) (string, bool) {
		value, found := map[string]string{"SYNCPASS_HOST_KUBECONFIG": writeKubeconfig(t, "http://127.0.0.1:1"), "SYNCPASS_TENANT": "dev"}[name]
		return value, found
	}
	code, out, stderr := reportOf(t, env, "-o", "md")
	assert.Equal(t, exitUnreachable, code)
	assert.Contains(t, out, "**Problem:** ")
	assert.Contains(t, stderr, "team-dev/dev: ")
}

func TestReportTakesHTMLOrMarkdown(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	for name, args := range map[string][]string{"another format": {"-o", "pdf"}, "an argument": {"dev"}} {
		t.Run(name, func(t *testing.T) {
			code, out, stderr := reportOf(t, none, args...)
			assert.Equal(t, exitInvalid, code)
			assert.Empty(t, out)
			assert.Contains(t, stderr, "report")
		})
	}
}
