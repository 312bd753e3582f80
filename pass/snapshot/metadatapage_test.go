package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
)

// packed is an answer as an API server gives it in protobuf.
func packed(object runtime.Object) []byte {
	scheme := runtime.NewScheme()
	utilruntime.Must(metav1.AddMetaToScheme(scheme))
	utilruntime.Must(corev1.AddToScheme(scheme))
	var body bytes.Buffer
	utilruntime.Must(protobuf.NewSerializer(scheme, scheme).Encode(object, &body))
	return body.Bytes()
}

func metadataOf(names ...string) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "more"}, Items: []metav1.PartialObjectMetadata{},
	}
	for i, name := range names {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(fmt.Sprint("u", i)), ResourceVersion: "5",
			Labels: map[string]string{"app": name}, Annotations: map[string]string{"long": strings.Repeat("x", 300*i)},
		}})
	}
	return list
}

// reading reads an answer, and says which items it was told of after the list.
func reading(body io.Reader) (page *metadataPage, told []string, err error) {
	begun := false
	page = &metadataPage{
		begin: func(metav1.ListMeta) { begun = true },
		each: func(item *metav1.PartialObjectMetadata) error {
			if !begun {
				return errors.New("an item came before the list")
			}
			told = append(told, item.Name+" "+item.Labels["app"])
			return nil
		},
	}
	return page, told, page.read(body)
}

func TestAPageOfMetadataIsReadItemByItem(t *testing.T) {
	list := metadataOf("a", "b", "c")
	text, err := json.Marshal(list)
	require.NoError(t, err)
	for name, body := range map[string][]byte{"protobuf": packed(list), "JSON": text} {
		t.Run(name, func(t *testing.T) {
			for how, reader := range map[string]io.Reader{
				"at once": bytes.NewReader(body), "byte by byte": iotest.OneByteReader(bytes.NewReader(body)), "with the end": iotest.DataErrReader(bytes.NewReader(body)),
			} {
				var told []string
				page := &metadataPage{
					begin: func(list metav1.ListMeta) { told = append(told, list.ResourceVersion) },
					each: func(item *metav1.PartialObjectMetadata) error {
						told = append(told, item.Name+" "+item.Labels["app"])
						return nil
					},
				}
				require.NoError(t, page.read(reader), how)
				require.Equal(t, []string{"9", "a a", "b b", "c c"}, told, how)
				require.Equal(t, "more", page.list.Continue, how)
			}
		})
	}
}

// An empty list deletes, and one without its end deletes a part: neither may be made of an answer that was cut.
func TestAPageOfMetadataThatIsCutIsNone(t *testing.T) {
	list := metadataOf("a", "b")
	text, err := json.Marshal(list)
	require.NoError(t, err)
	for name, body := range map[string][]byte{"protobuf": packed(list), "JSON": text} {
		t.Run(name, func(t *testing.T) {
			envelope := len(body)
			if name == "protobuf" {
				envelope -= 4 // two empty fields behind the list, which say nothing
			}
			for length := range envelope {
				_, _, err := reading(bytes.NewReader(body[:length]))
				require.ErrorIs(t, err, errNoMetadata, "%d bytes of %d", length, len(body))
			}
		})
	}
}

// What breaks off is no answer of another kind, which would be asked for in another way.
func TestAPageOfMetadataThatBreaksOffFails(t *testing.T) {
	broken := errors.New("the connection broke")
	body := packed(metadataOf("a", "b"))
	for length := range body {
		_, _, err := reading(io.MultiReader(bytes.NewReader(body[:length]), iotest.ErrReader(broken)))
		require.ErrorIs(t, err, broken, "after %d bytes of %d", length, len(body))
	}
}

func TestWhatIsNoPageOfMetadata(t *testing.T) {
	unversioned := metadataOf("a")
	unversioned.ResourceVersion = ""
	for name, body := range map[string][]byte{
		"nothing":               nil,
		"text":                  []byte("k8s"),
		"a Status":              packed(&metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Success"}),
		"whole objects":         packed(&corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}, ListMeta: metav1.ListMeta{ResourceVersion: "9"}}),
		"no resourceVersion":    packed(unversioned),
		"a length beyond all":   append(packed(metadataOf())[:4], 0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f),
		"a field with a number": append(packed(metadataOf())[:4], 0x08, 0x01),
	} {
		t.Run(name, func(t *testing.T) {
			_, told, err := reading(bytes.NewReader(body))
			require.ErrorIs(t, err, errNoMetadata)
			require.Empty(t, told)
		})
	}
}

// FuzzMetadataPage: whatever a server answers, it is read to an end, and an item is told of after its list only.
func FuzzMetadataPage(f *testing.F) {
	f.Add(packed(metadataOf("a", "b")))
	f.Add(packed(metadataOf()))
	f.Add([]byte(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a"}}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		page, told, err := reading(bytes.NewReader(body))
		if err != nil {
			require.ErrorIs(t, err, errNoMetadata)
			return
		}
		require.NotEmpty(t, page.list.ResourceVersion)
		require.LessOrEqual(t, len(told), len(body))
	})
}

// A server that goes away between two requests is no reason to give a pass up.
func TestAPageIsAskedForAgainWhereTheConnectionIsLost(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(packed(metadataOf("a")))
	}))
	defer server.Close()
	address, err := url.Parse(server.URL)
	require.NoError(t, err)
	client, err := rest.NewRESTClient(address, "", rest.ClientContentConfig{}, nil, server.Client())
	require.NoError(t, err)
	var told []string
	page := &metadataPage{begin: func(metav1.ListMeta) {}, each: func(item *metav1.PartialObjectMetadata) error {
		told = append(told, item.Name)
		return nil
	}}
	require.NoError(t, page.ask(t.Context(), client.Get().AbsPath("/x")))
	require.Equal(t, []string{"a"}, told)
	require.EqualValues(t, 2, asked.Load())
}
