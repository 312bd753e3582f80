package main

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// variable describes one environment variable, as the tags of config give it.
type variable struct {
	name, defaultValue, accepts, doc string
	field                            int
	// credentials says that a value may be an address with a password in it.
	credentials bool
}

// variables lists the environment variables that the runner reads, in the order of config.
func variables() []variable {
	t := reflect.TypeFor[config]()
	list := make([]variable, 0, t.NumField())
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		name, value, _ := strings.Cut(tag.Get("env"), ",default=")
		if shown, ok := tag.Lookup("shown"); ok {
			value = shown
		}
		list = append(list, variable{
			name: name, defaultValue: value, accepts: tag.Get("accepts"), doc: tag.Get("doc"), field: i, credentials: tag.Get("credentials") != "",
		})
	}
	return list
}

func (v variable) valueIn(c config) any {
	return reflect.ValueOf(c).Field(v.field).Interface()
}

// withoutCredentials is a value as it may be shown: an address without its user and password, also one that is faulty.
func (v variable) withoutCredentials(value string) string {
	end := strings.LastIndex(value, "@")
	if !v.credentials || end < 0 {
		return value
	}
	scheme, _, found := strings.Cut(value[:end], "://")
	if !found {
		return "***" + value[end:]
	}
	return scheme + "://***" + value[end:]
}

// serviceLink matches the variables that the kubelet sets in a Pod for each Service of the namespace: a Service named
// syncpass or syncpass-something makes variables with our prefix that nobody misspelt.
// https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
var serviceLink = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)
})

// unknownVariable is a SYNCPASS_ variable that the runner does not read.
type unknownVariable struct {
	name string
	// nearest is the known variable whose name is most like it; empty where none is.
	nearest string
}

// unknownVariables finds the SYNCPASS_ variables in environ (each NAME=value, as os.Environ gives them) that have no
// meaning, most likely because they are misspelt. They are sorted by name.
func unknownVariables(environ []string) []unknownVariable {
	known := variables()
	var unknown []unknownVariable
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		isKnown := slices.ContainsFunc(known, func(v variable) bool { return v.name == name })
		if value == "" || isKnown || !strings.HasPrefix(name, "SYNCPASS_") || serviceLink().MatchString(name) {
			continue
		}
		found := unknownVariable{name: name}
		// Further apart than a third of the name, the two have nothing to do with each other.
		best := (len(name)-len("SYNCPASS_"))/3 + 1
		for _, v := range known {
			if d := editDistance(name, v.name); d < best {
				found.nearest, best = v.name, d
			}
		}
		unknown = append(unknown, found)
	}
	slices.SortFunc(unknown, func(a, b unknownVariable) int { return strings.Compare(a.name, b.name) })
	return unknown
}

// editDistance is the Levenshtein distance between two ASCII strings.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
