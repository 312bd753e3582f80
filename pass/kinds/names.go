package kinds

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
)

// separator stands between the three parts of a mirror's name.
const separator = "-x-"

const (
	// maxNameLength is the longest mirror name of any kind: a label value and a Service name hold no more.
	maxNameLength = utilvalidation.DNS1123LabelMaxLength
	// maxParentLength is that of a kind whose controller names others after it, with a dash and a number of 32 bits, ten
	// digits, behind: Jobs by the minute, Pods by the index, revisions by a hash. Those names are labels of 63 characters.
	maxParentLength = maxNameLength - len("-4294967295")
)

// digestLength is 16 characters of base32, 80 bits: enough that nobody finds a second triple for a name.
const digestLength = 16

var base32Lower = base32.StdEncoding.WithPadding(base32.NoPadding)

// MirrorName is the name of the mirror of the tenant object namespace/name: `<name>-x-<namespace>-x-<tenant>` where
// that is no longer than the kind allows, valid for it, and can be read in one way only. Otherwise it is cut and ends in
// a digest of the three parts, so that two tenant objects never share a mirror.
func (m Mapping) MirrorName(kind Kind, namespace, name string) string {
	plain := name + separator + namespace + separator + m.Tenant
	if len(plain) <= kind.MaxNameLength() && unambiguous(plain) && len(kind.ValidName(plain)) == 0 {
		return plain
	}
	head := readable(plain)
	if len(kind.ValidName(head[:1])) > 0 {
		head = "x" + head
	}
	suffix := "-" + digest(name, namespace, m.Tenant)
	if most := kind.MaxNameLength() - len(suffix); len(head) > most {
		head = head[:most]
	}
	return strings.TrimRight(head, "-") + suffix
}

// WhyHashed is why the mirror of a tenant object does not have the plain name `<name>-x-<namespace>-x-<tenant>`; empty
// where it has.
func (m Mapping) WhyHashed(kind Kind, namespace, name string) string {
	plain := name + separator + namespace + separator + m.Tenant
	if m.MirrorName(kind, namespace, name) == plain {
		return ""
	}
	if over := len(plain) - kind.MaxNameLength(); over > 0 {
		return fmt.Sprintf("%s is %d characters too long for the name of a %s", plain, over, kind.Name())
	}
	if faults := kind.ValidName(plain); len(faults) > 0 {
		return fmt.Sprintf("%s is no name that every host takes for a %s: %s", plain, kind.Name(), strings.Join(faults, "; "))
	}
	return fmt.Sprintf("%s can be read in more than one way, because of the %s in it that is no separator", plain, separator)
}

// unambiguous says whether a plain name can be taken apart in one way only. Overlapping separators count too:
// (a-x, b) and (a, x-b) both give a-x-x-b.
func unambiguous(plain string) bool {
	count := 0
	for rest := plain; ; {
		i := strings.Index(rest, separator)
		if i < 0 {
			return count == 2
		}
		count++
		rest = rest[i+1:]
	}
}

// readable is a name with everything replaced that some kind does not take; it begins with a letter or digit.
func readable(name string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		default:
			return '-'
		}
	}, name), "-")
}

// digest is 80 bits of SHA-256 over the parts, each behind its length as eight big-endian bytes, in lower-case base32.
func digest(parts ...string) string {
	hash := sha256.New()
	for _, part := range parts {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		hash.Write(length[:])
		hash.Write([]byte(part))
	}
	return strings.ToLower(base32Lower.EncodeToString(hash.Sum(nil)))[:digestLength]
}

// labelValue is the value itself where a label can hold it, else its beginning and a digest.
func labelValue(value string) string {
	if len(utilvalidation.IsValidLabelValue(value)) == 0 {
		return value
	}
	head := readable(value)
	if most := utilvalidation.LabelValueMaxLength - digestLength - 1; len(head) > most {
		head = strings.TrimRight(head[:most], "-")
	}
	return strings.TrimLeft(head+"-"+digest(value), "-")
}

// subdomainName is the rule of most kinds, labelName the stricter one of Services: a host whose version does not yet
// relax it (KEP-5311) takes no name that starts with a digit.
func subdomainName(name string) []string { return validation.NameIsDNSSubdomain(name, false) }
func labelName(name string) []string     { return validation.NameIsDNS1035Label(name, false) }
