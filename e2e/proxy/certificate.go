package proxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"
)

// shown is a certificate that a proxy shows: in PEM, and with its key.
type shown struct {
	pem  []byte
	pair tls.Certificate
}

// certificate is that of all proxies of this process. Its key is of an elliptic curve: a signature with an RSA key takes
// thirty times as long, and each run of the binary asks for two.
var certificate = sync.OnceValues(func() (shown, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return shown{}, fmt.Errorf("generating the key of the certificate: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "syncpass e2e proxy"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(365 * 24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return shown{}, fmt.Errorf("signing the certificate: %w", err)
	}
	return shown{
		pem:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pair: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
	}, nil
})
