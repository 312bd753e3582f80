package policy

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Path is the way to a field of an object, one map key after the other. EachItem in the place of a key stands for every
// item of a list.
type Path []string

// EachItem is the element of a Path that stands for every item of a list. No field has an empty name.
const EachItem = ""

// maxPathLength is how many characters a path may have as text. The CRD states the same.
const maxPathLength = 256

// The syntax of paths, of which the CRD has the same pattern: plain keys dotted, other keys in brackets and quotes, [*]
// for every item of a list. They are compiled where a path is read: few policies have one.
const (
	pathPattern = `^([A-Za-z0-9_-]+|\["[^"\\]+"\])(\.[A-Za-z0-9_-]+|\["[^"\\]+"\]|\[\*\])*$`
	pathElement = `[A-Za-z0-9_-]+|\["[^"\\]+"\]|\[\*\]`
)

// rootless are the fields of every object that hold no reference: metadata is made anew on the other side, status is a
// side's own, and the other two say what the object is.
var rootless = []string{"metadata", "status", "apiVersion", "kind"}

// ParsePath reads the path of a reference, such as spec.rules[*].backend.name or data["tls.secret"]. The error says what
// is wrong and how it is written.
func ParsePath(text string) (Path, error) {
	if utf8.RuneCountInString(text) > maxPathLength || !regexp.MustCompile(pathPattern).MatchString(text) {
		return nil, fmt.Errorf(`must be a path such as spec.secretName, spec.rules[*].backend.name or spec.parameters["example.com/secret"], at most %d characters`, maxPathLength)
	}
	var path Path
	for _, element := range regexp.MustCompile(pathElement).FindAllString(text, -1) {
		switch {
		case element == "[*]":
			path = append(path, EachItem)
		case strings.HasPrefix(element, "["):
			path = append(path, element[2:len(element)-2])
		default:
			path = append(path, element)
		}
	}
	if slices.Contains(rootless, path[0]) {
		return nil, errors.New("must not lead into " + strings.Join(rootless, ", ") + ", which hold no references")
	}
	return path, nil
}

// GroupKind is the kind of the object that is named.
func (r Reference) GroupKind() schema.GroupKind {
	return schema.FromAPIVersionAndKind(cmp.Or(r.APIVersion, DefaultReferenceVersion), r.Kind).GroupKind()
}
