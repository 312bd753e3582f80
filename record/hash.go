package record

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Labels that derive two unrelated values from one credential (HMAC is the extract and, for one block, the expand step
// of HKDF, RFC 5869).
const (
	contentKeyLabel = "syncpass/v1 content hash"
	keyIDLabel      = "syncpass/v1 key id"
)

// hashSize is how much of the HMAC is kept, in bytes; keyIDSize the same for the id of the key.
const (
	hashSize  = 16
	keyIDSize = 8
)

// Hasher makes the content hashes of one tenant. They are keyed, because a SyncDecision is easier to read than a
// Secret: from a plain hash a short password could be guessed. The zero Hasher is not usable; see NewHasher.
//
// +kubebuilder:object:generate=false
type Hasher struct {
	key   []byte
	keyID string
}

// NewHasher derives the hash key from the tenant's credential, which no reader of the SyncDecision has. The credential
// must not be empty. The same credential gives the same hashes in every process.
func NewHasher(credential []byte) Hasher {
	return Hasher{
		key:   derive(credential, contentKeyLabel),
		keyID: hex.EncodeToString(derive(credential, keyIDLabel)[:keyIDSize]),
	}
}

// KeyID names the key (16 hex digits), so that hashes of another key are noticed. It does not give the key away.
func (h Hasher) KeyID() string { return h.keyID }

// Hash is the keyed hash of content as encoding/json writes it: keys sorted, and a number the same whether it was
// decoded as int64 or float64. Content must be what JSON decodes to; anything else is a programming error, and panics
// like runtime.DeepCopyJSON does.
func (h Hasher) Hash(content map[string]any) Hash {
	mac := hmac.New(sha256.New, h.key)
	if err := json.NewEncoder(mac).Encode(content); err != nil {
		panic(fmt.Sprintf("hashing content that is no JSON: %v", err))
	}
	return Hash(mac.Sum(nil)[:hashSize])
}

// String is the hash in hex.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// IsZero says whether no hash is known. No content hashes to it, short of a 2^-128 chance.
func (h Hash) IsZero() bool { return h == Hash{} }

func derive(credential []byte, label string) []byte {
	mac := hmac.New(sha256.New, credential)
	mac.Write([]byte(label))
	return mac.Sum(nil)
}
