// Package proxy stands between a client and a real API server, writes down every
// request, and lets a test interfere with one: answer in the server's place, hold
// it up, or drop it before or after the server saw it.
//
// The proxy ends TLS with a certificate of its own, so a client certificate
// cannot pass through it: clients must authenticate with a token, which is
// forwarded as it is. The proxy itself has no rights at the API server.
//
// The package knows nothing of syncpass but which records of its own a test does
// not count as writes, and it must not import any other package of this module.
package proxy
