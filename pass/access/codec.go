package access

import (
	"encoding/json"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// acceptMetadata asks that a write be answered with the object's metadata alone
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#metadata-only-fetches).
const acceptMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// dynamicConfig is what a dynamic client is made of, but for how it codes objects: see directly.
func dynamicConfig(config *rest.Config) *rest.Config {
	config = dynamic.ConfigFor(config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.NegotiatedSerializer = directly{config.NegotiatedSerializer}
	config.GroupVersion, config.APIPath = nil, "/" // the dynamic client sends absolute paths
	return config
}

// directly codes unstructured objects in one go, and leaves all else to the serializer that it stands before. That one
// goes through an object's text three times on the way in (for its type, for whether it is valid, for its fields) and
// twice on the way out, which is half of what sending an object costs a client.
type directly struct{ runtime.NegotiatedSerializer }

// EncoderForVersion implements [runtime.NegotiatedSerializer].
func (d directly) EncoderForVersion(encoder runtime.Encoder, version runtime.GroupVersioner) runtime.Encoder {
	return directEncoder{d.NegotiatedSerializer.EncoderForVersion(encoder, version)}
}

// DecoderToVersion implements [runtime.NegotiatedSerializer].
func (d directly) DecoderToVersion(decoder runtime.Decoder, version runtime.GroupVersioner) runtime.Decoder {
	return directDecoder{d.NegotiatedSerializer.DecoderToVersion(decoder, version)}
}

type directEncoder struct{ runtime.Encoder }

// Encode implements [runtime.Encoder].
func (e directEncoder) Encode(object runtime.Object, to io.Writer) error {
	if one, ok := object.(*unstructured.Unstructured); ok {
		return json.NewEncoder(to).Encode(one.Object)
	}
	return e.Encoder.Encode(object, to)
}

type directDecoder struct{ runtime.Decoder }

// Decode implements [runtime.Decoder]. A Status, and what is not the object that was asked for, it leaves to the
// serializer, which knows what to say about it.
func (d directDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	var content map[string]any
	switch into := into.(type) {
	case *unstructured.Unstructured:
		if utiljson.Unmarshal(data, &content) == nil && isObject(content) {
			into.Object = content
			return into, kindOf(into), nil
		}
	case *unstructured.UnstructuredList:
		if utiljson.Unmarshal(data, &content) == nil && isObject(content) && isList(content) {
			into.SetUnstructuredContent(content)
			delete(into.Object, "items") // they are in Items
			return into, kindOf(into), nil
		}
	}
	return d.Decoder.Decode(data, defaults, into)
}

func isObject(content any) bool {
	fields, _ := content.(map[string]any)
	kind, _ := fields["kind"].(string)
	version, _ := fields["apiVersion"].(string)
	return kind != "" && version != "" && !(kind == "Status" && version == "v1")
}

func isList(content map[string]any) bool {
	items, ok := content["items"].([]any)
	for _, item := range items {
		ok = ok && isObject(item)
	}
	return ok
}

func kindOf(object runtime.Object) *schema.GroupVersionKind {
	kind := object.GetObjectKind().GroupVersionKind()
	return &kind
}
