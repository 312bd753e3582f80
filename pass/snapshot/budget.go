package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
)

// What one pass holds of a tenant at the most. Whoever writes there, or answers for it, must not be able to take the
// process down, which may have other tenants to look after.
const (
	// maxTenantBytes bounds the objects that are read, in bytes of JSON with objectBytes for each. In memory they take
	// several times that.
	maxTenantBytes = 512 << 20
	// objectBytes is what an object costs beyond its JSON.
	objectBytes = 1 << 10
	// seenBytes is what an object costs of which the metadata was seen and nothing kept but its name.
	seenBytes = 256
	// maxPageItems bounds one answer: some servers know no pages and send all at once, but an item of one byte takes 24.
	maxPageItems = 100_000
)

// errTooMuch marks a tenant that has more than a pass can hold.
var errTooMuch = errors.New("the tenant has more than one pass holds")

// budget is how much of a side may still be read. Nil is without bounds: the host is trusted.
type budget struct{ left atomic.Int64 }

func newBudget(bytes int64) *budget {
	b := &budget{}
	b.left.Store(bytes)
	return b
}

// take takes from it, or gives back what is negative, and says whether there was enough left.
func (b *budget) take(bytes int64) bool { return b == nil || b.left.Add(-bytes) >= 0 }

// items are the items of a page, not yet decoded.
type items []json.RawMessage

// UnmarshalJSON takes the items one by one, so that it stops at the first that is too many.
func (i *items) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if start, err := decoder.Token(); err != nil || start != json.Delim('[') {
		return errors.Join(errors.New("its items are no list"), err)
	}
	found := items{}
	for decoder.More() {
		if len(found) == maxPageItems {
			return fmt.Errorf("it has more than %d items", maxPageItems)
		}
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return err
		}
		found = append(found, raw)
	}
	*i = found
	return nil
}
