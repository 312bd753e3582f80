package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ConfigError says that what was configured cannot be used, as opposed to a server that does not answer. It holds every
// problem that was found, each with the next step.
type ConfigError struct {
	Problems []error
}

// maxProblems bounds how many problems one message lists: a hostile kubeconfig can have thousands.
const maxProblems = 20

// Error implements error.
func (e *ConfigError) Error() string {
	texts := make([]string, 0, min(len(e.Problems), maxProblems+1))
	for i, p := range e.Problems {
		if i == maxProblems {
			texts = append(texts, fmt.Sprintf("and %d more", len(e.Problems)-maxProblems))
			break
		}
		texts = append(texts, p.Error())
	}
	return strings.Join(texts, "; ")
}

// Unwrap lets errors.Is and errors.As look into every problem.
func (e *ConfigError) Unwrap() []error { return e.Problems }

// Unreachable says whether err means that the API server could not be reached or could not serve (no connection, TLS
// failure, deadline passed, an answer that broke off, 429 or 5xx after the retries), as opposed to an answer that
// refuses. A request that its own process cancelled is not unreachable: the cause given to context.CancelCauseFunc must
// therefore match context.Canceled, as that of signal.NotifyContext and lease.ErrLost do.
func Unreachable(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, ErrBodyTooLarge) {
		return false
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		code := status.Status().Code
		return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
	}
	// net/http wraps whatever kept a request from being answered in a url.Error. What came after the headers does not
	// pass through it. A deadline that passed, context.DeadlineExceeded too, is a net.Error.
	var transport *url.Error
	var network net.Error
	return errors.As(err, &transport) || errors.As(err, &network) ||
		errors.Is(err, errBodyBroken) || errors.Is(err, io.ErrUnexpectedEOF)
}

// quote makes text that someone else wrote fit for a message: one line, no control characters, bounded.
func quote(s string) string {
	const most = 100
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strconv.Quote(s)
}
