package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"
)

// certificateLifetime is longer than any playground is left running.
const certificateLifetime = 365 * 24 * time.Hour

// authority is the certificate authority of one cluster: for the API server's
// certificate and for those of its clients.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	pem         []byte
}

// keyPair is a certificate and its private key, both PEM.
type keyPair struct{ certificate, key []byte }

func newAuthority(clusterName string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating the key of the certificate authority: %w", err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "syncpass e2e " + clusterName},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := sign(template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parsing the certificate authority: %w", err)
	}
	return &authority{certificate: certificate, key: key, pem: encodePEM("CERTIFICATE", der)}, nil
}

// serving returns a certificate for an API server that is reached through
// loopback, through the given addresses, and by Pods through the Service
// "kubernetes", whose clusterIP is the first address of serviceCIDR.
func (a *authority) serving(serviceCIDR string, addresses ...string) (*keyPair, error) {
	services, err := netip.ParsePrefix(serviceCIDR)
	if err != nil {
		return nil, fmt.Errorf("service range %q: %w", serviceCIDR, err)
	}
	ips := []net.IP{net.IPv4(127, 0, 0, 1), services.Masked().Addr().Next().AsSlice()}
	for _, address := range addresses {
		ip := net.ParseIP(address)
		if ip == nil {
			return nil, fmt.Errorf("advertise address %q is no IP address", address)
		}
		ips = append(ips, ip)
	}
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: ips,
		DNSNames: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local"},
	})
}

// client returns a certificate that the API server takes for this user and groups.
func (a *authority) client(user string, groups ...string) (*keyPair, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (a *authority) issue(template *x509.Certificate) (*keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating the key of %s: %w", template.Subject.CommonName, err)
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := sign(template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	private, _, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	return &keyPair{certificate: encodePEM("CERTIFICATE", der), key: private}, nil
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, signer crypto.Signer) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 126))
	if err != nil {
		return nil, fmt.Errorf("drawing a serial number: %w", err)
	}
	template.SerialNumber = serial
	// An hour back, for the clock of a container or virtual machine that lags.
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().Add(certificateLifetime)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
	if err != nil {
		return nil, fmt.Errorf("signing the certificate of %s: %w", template.Subject.CommonName, err)
	}
	return der, nil
}

// writeServiceAccountKeys makes the pair of keys that sign and verify
// ServiceAccount tokens.
func writeServiceAccountKeys(privateFile, publicFile string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generating the key of the ServiceAccount issuer: %w", err)
	}
	private, public, err := encodeKey(key)
	if err != nil {
		return err
	}
	return writeFiles(map[string][]byte{privateFile: private, publicFile: public})
}

func encodeKey(key *ecdsa.PrivateKey) (private, public []byte, err error) {
	// SEC 1 form for the private key: the form that kube-apiserver and
	// kube-controller-manager read for ServiceAccount keys as well as for TLS.
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding a private key: %w", err)
	}
	publicDER, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, nil, fmt.Errorf("encoding a public key: %w", err)
	}
	return encodePEM("EC PRIVATE KEY", der), encodePEM("PUBLIC KEY", publicDER), nil
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// writeFiles writes files that only their owner may read.
func writeFiles(files map[string][]byte) error {
	for file, data := range files {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
