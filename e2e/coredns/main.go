// Package main is CoreDNS for the tests, at the version that kubeadm installs with
// Kubernetes (see go.mod), with those plugins alone that manifests/tenant-dns and the host's
// cluster DNS of the tests use: all of them take several times as long to compile. It
// is a module of its own so that CoreDNS' dependencies stay out of the go.mod of
// syncpass; package cluster builds it.
package main

import (
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/rewrite"
	_ "github.com/coredns/coredns/plugin/template"
)

func main() { coremain.Run() }
