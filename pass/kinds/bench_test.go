package kinds

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncpass/syncpass/record"
)

// benchObjects are tenant objects of the kinds that there are many of.
func benchObjects() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		object("v1", "ConfigMap", Content{"data": Content{"payload": strings.Repeat("x", 1<<10)}}),
		object("v1", "Service", Content{"spec": Content{
			"type": "ClusterIP", "clusterIP": "10.43.0.7", "selector": Content{"app": "web"},
			"ports": []any{Content{"name": "http", "port": int64(80), "targetPort": int64(8080), "protocol": "TCP"}},
		}}),
		object("v1", "Pod", Content{"spec": Content{
			"serviceAccountName": "default", "automountServiceAccountToken": false,
			"volumes": []any{Content{"name": "config", "configMap": Content{"name": "app"}}, Content{"name": "key", "secret": Content{"secretName": "tls"}}},
			"containers": []any{Content{
				"name": "web", "image": "registry.example.com/web:1.2.3",
				"env":          []any{Content{"name": "TOKEN", "valueFrom": Content{"secretKeyRef": Content{"name": "api", "key": "token"}}}},
				"volumeMounts": []any{Content{"name": "config", "mountPath": "/etc/app"}, Content{"name": "key", "mountPath": "/etc/key"}},
			}},
		}}),
	}
}

func BenchmarkProject(b *testing.B) {
	eachKind(b, func(kind Kind, tenant, mirror *unstructured.Unstructured) {
		mapping.Project(kind, tenant, mirror, KeepForeign)
	})
}

func BenchmarkReflect(b *testing.B) {
	eachKind(b, func(kind Kind, tenant, mirror *unstructured.Unstructured) { mapping.Reflect(kind, mirror, tenant) })
}

func BenchmarkDifference(b *testing.B) {
	eachKind(b, func(kind Kind, _, mirror *unstructured.Unstructured) {
		content := ContentOf(kind, record.Host, mirror)
		if found := Difference(content, ContentOf(kind, record.Host, mirror)); len(found) > 0 {
			b.Fatalf("an object differs from itself: %v", found)
		}
	})
}

func eachKind(b *testing.B, f func(kind Kind, tenant, mirror *unstructured.Unstructured)) {
	for _, tenant := range benchObjects() {
		kind := kindOf(tenant)
		mirror := stored(mapping.Project(kind, tenant, nil, KeepNone))
		b.Run(tenant.GetKind(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f(kind, tenant, mirror)
			}
		})
	}
}
