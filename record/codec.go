package record

import (
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// packedPage is the body of a page: what is remembered of its pairs, in three sections, so that the many pairs with
// nothing but a baseline pay for nothing else. It is written in CBOR's core deterministic encoding (RFC 8949, 4.2.1).
type packedPage struct {
	_         struct{} `cbor:",toarray"`
	Baselines section[[]byte]
	Intents   section[packedIntent]
	Standings section[packedStanding]
}

// section is by kind (as Kind.group, the form of schema.GroupKind), namespace and name, so that each kind and each
// namespace of it is written once a page.
type section[T any] map[string]map[string]map[string]T

type packedIntent struct {
	_    struct{} `cbor:",toarray"`
	Side Side
	// Versions are the target's and the source's, in this order.
	Versions []byte
	Want     []byte
	Path     string
}

type packedStanding struct {
	_      struct{} `cbor:",toarray"`
	Reason Reason
	Digest []byte
	// Since and LastTime are Unix seconds.
	Since, LastTime int64
	Count           int32
}

var (
	encMode = must(cbor.CoreDetEncOptions().EncMode())
	// The decoder takes nothing that the encoder would not write, and a page's size bounds all else.
	decMode = must(cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		MaxNestedLevels:   8,
		MaxMapPairs:       MaxPageSize,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
	}.DecMode())
)

// must is for package variables whose making depends on constants only.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func pack(states map[Key]State) ([]byte, error) {
	p := packedPage{Baselines: section[[]byte]{}, Intents: section[packedIntent]{}, Standings: section[packedStanding]{}}
	for k, s := range states {
		if b := s.Baseline; b != nil {
			p.Baselines.put(k, appendBaseline(*b))
		}
		if i := s.Intent; i != nil {
			p.Intents.put(k, packedIntent{
				Side:     i.Side,
				Versions: appendVersion(appendVersion(nil, i.Target), i.Source),
				Want:     i.Want[:],
				Path:     i.Path,
			})
		}
		if st := s.Standing; st != nil {
			p.Standings.put(k, packedStanding{
				Reason:   st.Reason,
				Digest:   st.Digest[:],
				Since:    st.Since.Unix(),
				LastTime: st.LastTime.Unix(),
				Count:    st.Count,
			})
		}
	}
	return encMode.Marshal(p)
}

func unpack(body []byte) (map[Key]State, error) {
	var p packedPage
	if err := decMode.Unmarshal(body, &p); err != nil {
		return nil, err
	}
	states := make(map[Key]State, p.Baselines.size()) // nearly every pair has one
	err := errors.Join(
		p.Baselines.each(states, func(s *State, packed []byte) error {
			baseline, err := readBaseline(packed)
			s.Baseline = &baseline
			return err
		}),
		p.Intents.each(states, func(s *State, packed packedIntent) error {
			target, source, err := twoVersions(packed.Versions)
			want, ok := toHash(packed.Want)
			if !ok || packed.Side != Host && packed.Side != Tenant {
				err = errors.Join(err, errors.New("an intent is malformed"))
			}
			s.Intent = &Intent{Side: packed.Side, Target: target, Want: want, Source: source, Path: packed.Path}
			return err
		}),
		p.Standings.each(states, func(s *State, packed packedStanding) error {
			digest, ok := toHash(packed.Digest)
			if !ok {
				return errors.New("a standing skip is malformed")
			}
			s.Standing = &Standing{
				Reason:   packed.Reason,
				Digest:   digest,
				Since:    time.Unix(packed.Since, 0).UTC(),
				LastTime: time.Unix(packed.LastTime, 0).UTC(),
				Count:    packed.Count,
			}
			return nil
		}),
	)
	if err != nil {
		return nil, err
	}
	for k, s := range states {
		if !k.storable() || !s.storable().equal(s) {
			return nil, errors.New("a pair holds what is never written")
		}
	}
	return states, nil
}

func (s section[T]) put(k Key, v T) {
	kind := k.GroupKind().String()
	if s[kind] == nil {
		s[kind] = map[string]map[string]T{}
	}
	if s[kind][k.Namespace] == nil {
		s[kind][k.Namespace] = map[string]T{}
	}
	s[kind][k.Namespace][k.Name] = v
}

func (s section[T]) size() (n int) {
	for _, namespaces := range s {
		for _, names := range namespaces {
			n += len(names)
		}
	}
	return n
}

// each adds every element to the state of its pair. It stops at the first that cannot be read.
func (s section[T]) each(states map[Key]State, add func(*State, T) error) error {
	for kind, namespaces := range s {
		gk := schema.ParseGroupKind(kind)
		for namespace, names := range namespaces {
			for name, v := range names {
				k := Key{Group: gk.Group, Kind: gk.Kind, Namespace: namespace, Name: name}
				state := states[k]
				if err := add(&state, v); err != nil {
					return err
				}
				states[k] = state
			}
		}
	}
	return nil
}

// appendBaseline writes both sides, the tenant's first, and behind them the fingerprint where there is one.
func appendBaseline(b Baseline) []byte {
	packed := appendVersion(appendVersion(nil, b.Tenant), b.Host)
	if b.Writes != (Fingerprint{}) {
		packed = append(packed, b.Writes[:]...)
	}
	return packed
}

func readBaseline(packed []byte) (b Baseline, err error) {
	var rest []byte
	if b.Tenant, b.Host, rest, err = readVersions(packed); err != nil || len(rest) == 0 {
		return b, err
	}
	if len(rest) != len(b.Writes) {
		return b, errVersion
	}
	b.Writes = Fingerprint(rest)
	return b, nil
}

// appendVersion writes one side. Nearly every one is
//
//	uvarint resourceVersion+1 ‖ 16 bytes UID ‖ 16 bytes hash
//
// and one whose resourceVersion is no canonical decimal number or whose UID is no canonical UUID (RFC 9562) is
//
//	uvarint 0 ‖ uvarint length, UID ‖ uvarint length, resourceVersion ‖ 16 bytes hash
//
// so that with CBOR's share a pair with a baseline stays below 160 bytes in base64.
func appendVersion(b []byte, v Version) []byte {
	rv, rvErr := strconv.ParseUint(v.ResourceVersion, 10, 64)
	id, idErr := uuid.Parse(string(v.UID))
	if rvErr == nil && rv != math.MaxUint64 && strconv.FormatUint(rv, 10) == v.ResourceVersion &&
		idErr == nil && id.String() == string(v.UID) {
		b = binary.AppendUvarint(b, rv+1)
		b = append(b, id[:]...)
	} else {
		b = append(b, 0)
		for _, s := range []string{string(v.UID), v.ResourceVersion} {
			b = binary.AppendUvarint(b, uint64(len(s)))
			b = append(b, s...)
		}
	}
	return append(b, v.Hash[:]...)
}

var errVersion = errors.New("the sides are malformed")

// twoVersions reads what two appendVersions wrote, and nothing after it.
func twoVersions(b []byte) (first, second Version, err error) {
	first, second, rest, err := readVersions(b)
	if err == nil && len(rest) > 0 {
		err = errVersion
	}
	return first, second, err
}

func readVersions(b []byte) (first, second Version, rest []byte, err error) {
	if first, rest, err = readVersion(b); err == nil {
		second, rest, err = readVersion(rest)
	}
	return first, second, rest, err
}

func readVersion(b []byte) (v Version, rest []byte, err error) {
	rv, n := binary.Uvarint(b)
	if n <= 0 {
		return v, nil, errVersion
	}
	b = b[n:]
	if rv > 0 {
		if len(b) < len(uuid.UUID{}) {
			return v, nil, errVersion
		}
		v.ResourceVersion = strconv.FormatUint(rv-1, 10)
		v.UID = types.UID(uuid.UUID(b[:len(uuid.UUID{})]).String())
		b = b[len(uuid.UUID{}):]
	} else {
		var s [2]string
		for i := range s {
			length, n := binary.Uvarint(b)
			if n <= 0 || length > uint64(len(b)-n) {
				return v, nil, errVersion
			}
			s[i], b = string(b[n:n+int(length)]), b[n+int(length):]
		}
		v.UID, v.ResourceVersion = types.UID(s[0]), s[1]
	}
	if len(b) < hashSize {
		return v, nil, errVersion
	}
	v.Hash = Hash(b[:hashSize])
	return v, b[hashSize:], nil
}

func toHash(b []byte) (Hash, bool) {
	if len(b) != hashSize {
		return Hash{}, false
	}
	return Hash(b), true
}
