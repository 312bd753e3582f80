package snapshot

import (
	"bytes"
	"context"
	"errors"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// metadataPageSize is larger than pageSize: an item's metadata is a kilobyte or so.
const metadataPageSize = 2000

// acceptMetadata asks for the metadata of a list's items alone, in protobuf where the server has it
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#metadata-only-fetches).
const acceptMetadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1," +
	"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

// errNoMetadata marks an answer that is no list of metadata alone. The list is to be read as a whole then, which tells a
// malformed object from the others, and an answer that is no list at all from one that an older server gives.
var errNoMetadata = errors.New("the server gives no metadata-only list")

var metadataDecoder = sync.OnceValue(func() runtime.Decoder {
	scheme := runtime.NewScheme()
	utilruntime.Must(metav1.AddMetaToScheme(scheme))
	return serializer.NewCodecFactory(scheme).UniversalDeserializer()
})

// metadataList lists the metadata of a collection.
type metadataList struct {
	collection
	// begin is told when the list begins, again where it begins anew, and see of each item; never by several goroutines at
	// once. fixed is told the resourceVersion that the list shows.
	begin func()
	fixed func(version string)
	see   func(*metav1.PartialObjectMetadata)
}

// all lists the metadata as collection.all does whole objects, without keeping any of it.
func (l metadataList) all(ctx context.Context) error {
	return restarting(metadataPageSize, func(size int) error {
		l.begin()
		return l.once(ctx, size)
	})
}

func (l metadataList) once(ctx context.Context, size int) error {
	seen := map[types.NamespacedName]struct{}{}
	defer func() { l.left.take(-int64(len(seen)) * seenBytes) }() // the content that is read later counts by itself
	first := true
	return l.pages(ctx, acceptMetadata, size, func(body []byte) (next string, err error) {
		page, err := decodeMetadata(body)
		if err != nil {
			return "", err
		}
		if first {
			l.fixed(page.ResourceVersion)
			first = false
		}
		for i := range page.Items {
			item := &page.Items[i]
			name := types.NamespacedName{Namespace: item.Namespace, Name: item.Name}
			_, twice := seen[name]
			if err := l.misplaced(name, twice); err != nil {
				return "", err
			}
			if item.UID == "" || item.ResourceVersion == "" {
				return "", errNoMetadata // reading everything tells such an object from the others
			}
			seen[name] = struct{}{}
			if !l.left.take(seenBytes) {
				return "", l.tooMuch()
			}
			l.see(item)
		}
		return page.Continue, nil
	})
}

// decodeMetadata takes nothing for a list that is none.
func decodeMetadata(body []byte) (*metav1.PartialObjectMetadataList, error) {
	object, _, err := metadataDecoder().Decode(body, nil, nil)
	page, ok := object.(*metav1.PartialObjectMetadataList)
	switch {
	case err != nil, !ok, page.ResourceVersion == "":
		return nil, errNoMetadata
	case page.Items == nil && bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")): // protobuf does not tell none from an empty list
		return nil, errNoMetadata
	}
	return page, nil
}
