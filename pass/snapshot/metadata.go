package snapshot

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// metadataPageSize is much larger than pageSize: of an item's metadata nothing is held but what it tells. An API server
// answers the first page from memory, and reads the further ones from etcd where nothing of the kind was written for some
// minutes, which is twice the work; and each page is a journey.
const metadataPageSize = 20_000

// acceptMetadata asks for the metadata of a list's items alone, in protobuf where the server has it
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#metadata-only-fetches).
const acceptMetadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1," +
	"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

// errNoMetadata marks an answer that is no list of metadata alone. The list is to be read as a whole then, which tells a
// malformed object from the others, and an answer that is no list at all from one that an older server gives.
var errNoMetadata = errors.New("the server gives no metadata-only list")

// metadataList lists the metadata of a collection.
type metadataList struct {
	collection
	// begin is told when the list begins, again where it begins anew, and see of each item; never by several goroutines at
	// once. See says whether it was told of the item before. fixed is told the resourceVersion that the list shows.
	begin func()
	fixed func(version string)
	see   func(*metav1.PartialObjectMetadata) (again bool)
}

// all lists the metadata as collection.all does whole objects, without keeping any of it.
func (l metadataList) all(ctx context.Context) error {
	return restarting(metadataPageSize, func(size int) error {
		l.begin()
		return l.once(ctx, size)
	})
}

func (l metadataList) once(ctx context.Context, size int) error {
	seen := int64(0)
	defer func() { l.left.take(-seen * seenBytes) }() // the content that is read later counts by itself
	first := true
	return l.pages(acceptMetadata, size, func(request *rest.Request) (next string, err error) {
		page := metadataPage{
			begin: func(list metav1.ListMeta) {
				if first {
					l.fixed(list.ResourceVersion)
					first = false
				}
			},
			each: func(item *metav1.PartialObjectMetadata) error {
				if err := l.check(item); err != nil {
					return err
				}
				seen++
				switch {
				case !l.left.take(seenBytes):
					return l.tooMuch()
				case l.see(item):
					return twice(types.NamespacedName{Namespace: item.Namespace, Name: item.Name})
				}
				return nil
			},
		}
		err = page.ask(ctx, request)
		return page.list.Continue, err
	})
}

// check says what is wrong with an item.
func (l metadataList) check(item *metav1.PartialObjectMetadata) error {
	if err := l.misplaced(types.NamespacedName{Namespace: item.Namespace, Name: item.Name}); err != nil {
		return err
	}
	if item.UID == "" || item.ResourceVersion == "" {
		return errNoMetadata // reading everything tells such an object from the others
	}
	return nil
}
