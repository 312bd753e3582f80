package store

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/record"
)

// operation is one of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// statusPatch is the JSON patch that turns one status into the next, if the object still has that UID and
// resourceVersion: with these in it, an API server refuses any other object with a conflict. A head is nearly all
// trail, of which a pass adds a few entries and drops as many, and only these are sent. Without an old status there is
// to be nothing left of what is stored.
func statusPatch(uid types.UID, resourceVersion string, old *record.SyncDecisionStatus, next record.SyncDecisionStatus) ([]byte, error) {
	patch := []operation{
		{"add", "/metadata/uid", uid},
		{"add", "/metadata/resourceVersion", resourceVersion},
	}
	if old == nil {
		return json.Marshal(append(patch, operation{"add", "/status", next}))
	}
	before, err := fieldsOf(*old)
	if err != nil {
		return nil, err
	}
	after, err := fieldsOf(next)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, stays := after[name]; !stays {
			patch = append(patch, operation{"remove", "/status/" + name, nil})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if string(before[name]) != string(after[name]) {
			patch = append(patch, operation{"add", "/status/" + name, after[name]})
		}
	}
	switch {
	case len(next.Entries) == 0 && len(old.Entries) > 0:
		patch = append(patch, operation{"remove", "/status/entries", nil})
	case len(next.Entries) > 0:
		patch = append(patch, trailPatch(old.Entries, next.Entries)...)
	}
	return json.Marshal(patch)
}

// fieldsOf are the fields of a status but for the trail.
func fieldsOf(status record.SyncDecisionStatus) (map[string]json.RawMessage, error) {
	status.Entries = nil
	text, err := json.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("encoding the status: %w", err)
	}
	fields := map[string]json.RawMessage{}
	return fields, json.Unmarshal(text, &fields)
}

// trailPatch turns one trail into the next: the oldest entries go, some in between may have changed, and new ones come.
// Where the two have little in common, the next is sent whole.
func trailPatch(old, next []record.Entry) []operation {
	const trail = "/status/entries"
	whole := []operation{{"add", trail, next}}
	dropped := slices.IndexFunc(old, func(e record.Entry) bool { return equality.Semantic.DeepEqual(e, next[0]) })
	if dropped < 0 {
		return whole
	}
	patch := slices.Repeat([]operation{{"remove", trail + "/0", nil}}, dropped)
	kept := old[dropped:]
	for range len(kept) - len(next) {
		patch = append(patch, operation{"remove", trail + "/" + strconv.Itoa(len(next)), nil})
	}
	for i, entry := range next {
		switch {
		case i >= len(kept):
			patch = append(patch, operation{"add", trail + "/-", entry})
		case !equality.Semantic.DeepEqual(kept[i], entry):
			patch = append(patch, operation{"replace", trail + "/" + strconv.Itoa(i), entry})
		}
	}
	if len(patch) > len(next) {
		return whole
	}
	return patch
}
