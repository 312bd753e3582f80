package store

import (
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

var (
	// ErrSuperseded: another pass of this tenant has written since this one loaded the SyncDecision, or somebody has
	// deleted or edited it. Whoever gets it has to stop writing; what it did is known from its intents. The next pass
	// goes on.
	ErrSuperseded = errors.New("superseded by another pass")

	// ErrTooLarge: the API server takes no object of that size, not even with a shortened trail. Trying again is of no
	// use: lower spec.explain.retain, or let the policy name fewer kinds.
	ErrTooLarge = errors.New("the API server refuses an object of this size; lower spec.explain.retain or let the policy name fewer kinds")
)

// tooLarge recognises a refusal for size. A kube-apiserver answers 413 for its own limit and 500 with etcd's or gRPC's
// words for etcd's (--max-request-bytes, 1.5 MiB by default).
func tooLarge(err error) bool {
	if apierrors.IsRequestEntityTooLargeError(err) {
		return true
	}
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Code < http.StatusInternalServerError {
		return false
	}
	message := strings.ToLower(status.Status().Message)
	return strings.Contains(message, "request is too large") || strings.Contains(message, "message larger than max")
}

// refused recognises an answer that certainly means that nothing was written, and that the same request will be
// refused again. What is neither that nor a conflict (a timeout, a reset, a 5xx) may have been written.
func refused(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && code != http.StatusConflict && code != http.StatusRequestTimeout
}
