package proxy

import (
	"io"
	"net/http"
	"sync/atomic"
)

// countedBody counts what is read of a client's body. The API server may answer
// while some of it is still being read, in another goroutine.
type countedBody struct {
	io.ReadCloser
	bytes atomic.Int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes.Add(int64(n))
	return n, err
}

// countedWriter counts the bytes of an answer's body.
type countedWriter struct {
	http.ResponseWriter
	bytes int64
}

func (w *countedWriter) Write(data []byte) (int, error) {
	n, err := w.ResponseWriter.Write(data)
	w.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController flush.
func (w *countedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
