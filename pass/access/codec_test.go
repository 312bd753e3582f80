package access

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

func TestObjectsAreCodedAsTheDynamicClientCodesThem(t *testing.T) {
	library := dynamic.ConfigFor(&rest.Config{}).NegotiatedSerializer
	direct := directly{library}
	theirs, ours := library.DecoderToVersion(library.SupportedMediaTypes()[0].Serializer, nil), direct.DecoderToVersion(library.SupportedMediaTypes()[0].Serializer, nil)
	for name, text := range map[string]string{
		"an object":                   `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","generation":9007199254740993},"data":{"k":"<v>"}}`,
		"numbers":                     `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"int":1,"float":1.0,"half":0.5,"none":null}}`,
		"an object that has items":    `{"apiVersion":"example.com/v1","kind":"Basket","metadata":{"name":"a"},"items":[1,2]}`,
		"a list":                      `{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"7"},"items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}]}`,
		"a list whose items are bare": `{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}]}`,
		"a list without items":        `{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"7"},"items":null}`,
		"an empty list":               `{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"7"},"items":[]}`,
		"success":                     `{"apiVersion":"v1","kind":"Status","status":"Success"}`,
		"a refusal":                   `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Conflict","code":409}`,
		"no kind":                     `{"metadata":{"name":"a"}}`,
		"a kind that is no text":      `{"apiVersion":"v1","kind":7}`,
		"keys in other cases":         `{"ApiVersion":"v1","KIND":"ConfigMap","kind":"Secret","apiVersion":"v1"}`,
		"no object":                   `["v1"]`,
		"cut off":                     `{"apiVersion":"v1","kind":"ConfigMap","meta`,
		"no JSON":                     `<html>`,
		"nothing":                     ``,
	} {
		t.Run(name, func(t *testing.T) {
			for _, into := range []func() runtime.Object{
				func() runtime.Object { return &unstructured.Unstructured{} },
				func() runtime.Object { return &unstructured.UnstructuredList{} },
				func() runtime.Object { return nil },
			} {
				want, wantKind, wantErr := theirs.Decode([]byte(text), nil, into())
				got, gotKind, err := ours.Decode([]byte(text), nil, into())
				require.Equal(t, wantErr == nil, err == nil, "%v, but %v", wantErr, err)
				if wantErr != nil {
					assert.Equal(t, wantErr.Error(), err.Error())
					continue
				}
				assert.Equal(t, want, got)
				assert.Equal(t, wantKind, gotKind)
			}
		})
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": map[string]any{"k": "<&>\u2028é", "n": int64(1) << 60},
	}}
	for _, o := range []runtime.Object{object, &metav1.DeleteOptions{}} {
		var want, got bytes.Buffer
		require.NoError(t, library.EncoderForVersion(library.SupportedMediaTypes()[0].Serializer, nil).Encode(o, &want))
		require.NoError(t, direct.EncoderForVersion(library.SupportedMediaTypes()[0].Serializer, nil).Encode(o, &got))
		assert.Equal(t, strings.TrimSpace(want.String()), strings.TrimSpace(got.String()))
	}
}
