package snapshot

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/syncpass/syncpass/pass/access"
)

// readAhead is how much of an answer is read at a time, in bytes. Every read of an HTTP/2 body tells the server that so much
// more may come, so that small ones cost more than what they bring.
const readAhead = 128 << 10

// metadataPage reads one answer.
type metadataPage struct {
	// begin is called once what the list says about itself is known, and each then for one item after the other, which it
	// may not keep. An error of either ends the reading.
	begin func(metav1.ListMeta)
	each  func(*metav1.PartialObjectMetadata) error

	kind   runtime.TypeMeta
	list   metav1.ListMeta
	item   metav1.PartialObjectMetadata
	buffer bytes.Buffer
}

// ask sends a request for the page, and reads the answer.
func (p *metadataPage) ask(ctx context.Context, request *rest.Request) error {
	var body io.ReadCloser
	// Stream does not try again as Do does where the connection is lost before an answer has begun.
	err := retry.OnError(retry.DefaultRetry, connectionLost, func() (err error) {
		body, err = request.Stream(ctx)
		return err
	})
	if err != nil {
		return err
	}
	defer body.Close()
	return p.read(body)
}

func connectionLost(err error) bool {
	return utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
}

// read reads the answer, in protobuf item by item as they come, so that a long page takes no more memory than a short
// one. errNoMetadata is the cause where it is none of its kind, or not whole.
func (p *metadataPage) read(body io.Reader) error {
	reader := bufio.NewReaderSize(body, readAhead)
	start, err := reader.Peek(len(protobufPrefix))
	switch {
	case err != nil && !ended(err):
		return err
	case !bytes.Equal(start, protobufPrefix):
		return p.readJSON(reader)
	}
	_, _ = reader.Discard(len(protobufPrefix)) // they were read just now
	if err := eachField(reader, p.envelope); err != nil {
		return err
	}
	if p.list.ResourceVersion == "" {
		return errNoMetadata
	}
	return nil
}

// protobufPrefix is what tells Kubernetes' protobuf from JSON; a runtime.Unknown follows that holds the list
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding).
var protobufPrefix = []byte("k8s\x00")

// The numbers of the fields of runtime.Unknown and of metav1.PartialObjectMetadataList.
const (
	envelopeType protowire.Number = 1
	envelopeRaw  protowire.Number = 2
	listMeta     protowire.Number = 1
	listItem     protowire.Number = 2
)

func (p *metadataPage) envelope(number protowire.Number, field io.Reader) error {
	switch {
	case number == envelopeType:
		return p.unpack(field, &p.kind)
	case number != envelopeRaw:
		return nil
	case p.kind.GroupVersionKind() != metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList"):
		return errNoMetadata
	}
	return eachField(bufio.NewReaderSize(field, readAhead), p.content)
}

func (p *metadataPage) content(number protowire.Number, field io.Reader) error {
	switch {
	case number == listMeta:
		if err := p.unpack(field, &p.list); err != nil {
			return err
		}
		if p.list.ResourceVersion == "" {
			return errNoMetadata
		}
		p.begin(p.list)
		return nil
	case number != listItem:
		return nil
	case p.list.ResourceVersion == "":
		return errNoMetadata
	}
	p.item = metav1.PartialObjectMetadata{}
	if err := p.unpack(field, &p.item); err != nil {
		return err
	}
	return p.each(&p.item)
}

// unpack reads a message.
func (p *metadataPage) unpack(field io.Reader, message interface{ Unmarshal([]byte) error }) error {
	p.buffer.Reset()
	if _, err := p.buffer.ReadFrom(field); err != nil {
		return err
	}
	if message.Unmarshal(p.buffer.Bytes()) != nil {
		return errNoMetadata
	}
	return nil
}

// eachField calls f for one field of a message after the other, each of which is a message of its own or bytes.
func eachField(message *bufio.Reader, f func(protowire.Number, io.Reader) error) error {
	for {
		tag, err := binary.ReadUvarint(message)
		if err == io.EOF { // of the message itself: one that broke off wraps it
			return nil
		}
		number, wire := protowire.DecodeTag(tag)
		length := uint64(0)
		if err == nil {
			length, err = binary.ReadUvarint(message)
		}
		if err != nil && !ended(err) {
			return err
		}
		if err != nil || wire != protowire.BytesType || length > access.MaxBodyBytes {
			return errNoMetadata
		}
		field := &io.LimitedReader{R: message, N: int64(length)}
		if err := f(number, field); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, field); err != nil {
			return err
		}
		if field.N > 0 {
			return errNoMetadata
		}
	}
}

// ended says that an answer is over. One that broke off says so in an error of its own.
func ended(err error) bool { return err == io.EOF || err == io.ErrUnexpectedEOF }

var metadataDecoder = sync.OnceValue(func() runtime.Decoder {
	scheme := runtime.NewScheme()
	utilruntime.Must(metav1.AddMetaToScheme(scheme))
	return serializer.NewCodecFactory(scheme).UniversalDeserializer()
})

// readJSON reads the answer of a server that has no protobuf.
func (p *metadataPage) readJSON(body io.Reader) error {
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	object, _, err := metadataDecoder().Decode(text, nil, nil)
	list, ok := object.(*metav1.PartialObjectMetadataList)
	if err != nil || !ok || list.ResourceVersion == "" || list.Items == nil {
		return errNoMetadata
	}
	p.list = list.ListMeta
	p.begin(p.list)
	for i := range list.Items {
		if err := p.each(&list.Items[i]); err != nil {
			return err
		}
	}
	return nil
}
