package policy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	yamlv2 "go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// MaxBytes is how large a policy file may be: more than etcd lets a SyncPolicy be by default would help nobody.
const MaxBytes = 1 << 20

// InvalidError says everything that is wrong with one SyncPolicy.
type InvalidError struct {
	// Name of the policy; empty where the object does not say.
	Name string
	// Faults in a fixed order, at most one for each fault made, each with the path of its field.
	Faults field.ErrorList
}

// Error puts all faults into one line. A caller with more room can print Faults one by one.
func (e *InvalidError) Error() string {
	faults := make([]string, len(e.Faults))
	for i, fault := range e.Faults {
		faults[i] = fault.Error()
	}
	return fmt.Sprintf("SyncPolicy %q is invalid: %s", e.Name, strings.Join(faults, "; "))
}

// Parse reads a SyncPolicy from a YAML (or JSON) file that holds exactly one, with its defaults filled in. An error
// about the policy itself is an *InvalidError with all of its faults: unknown and duplicate fields, values of the
// wrong type, and everything that Validate finds.
func Parse(data []byte) (*SyncPolicy, error) {
	document, err := onlyDocument(data)
	if err != nil {
		return nil, err
	}
	asJSON, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, fmt.Errorf("reading the policy file as YAML: %w", err)
	}
	var tree any
	if err := json.Unmarshal(asJSON, &tree); err != nil {
		return nil, fmt.Errorf("reading the policy file as YAML: %w", err)
	}
	object, ok := tree.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the policy file holds %s where a SyncPolicy is wanted: it begins with `apiVersion: %s` and `kind: %s`",
			typeName(tree), GroupVersion, syncPolicyKind)
	}
	duplicates, err := duplicateFields(document)
	if err != nil {
		return nil, err
	}
	return fromObject(object, duplicates)
}

// FromObject reads a SyncPolicy from the content of an object as an API server gave it (unstructured's Object), as
// strictly as Parse: the CRD that is installed may be older or looser than this code.
func FromObject(object map[string]any) (*SyncPolicy, error) {
	return fromObject(object, nil)
}

func fromObject(object map[string]any, faults field.ErrorList) (*SyncPolicy, error) {
	var d decoder
	policy := d.syncPolicy(object)
	faults = append(faults, d.faults...)
	for _, fault := range Validate(policy) {
		// What could not be read is already reported, and stands empty here.
		if !d.failed(fault.Field) {
			faults = append(faults, fault)
		}
	}
	if len(faults) > 0 {
		return nil, &InvalidError{Name: policy.Name, Faults: faults}
	}
	policy.SetDefaults()
	return policy, nil
}

// onlyDocument returns the one document of a YAML stream that is not empty. Taking the first of several would apply
// half of what somebody wrote.
func onlyDocument(data []byte) ([]byte, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("the policy file has %d bytes, which is over the limit of %d: is it the right file?", len(data), MaxBytes)
	}
	count, err := countDocuments(data)
	if err != nil {
		return nil, err
	}
	if count != 1 {
		return nil, fmt.Errorf("the policy file holds %d YAML documents where exactly one SyncPolicy is wanted: put it into a file of its own", count)
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := reader.Read()
		if err != nil {
			return nil, fmt.Errorf("reading the policy file as YAML: %w", err)
		}
		var content any
		if err := yamlv2.Unmarshal(document, &content); err != nil {
			return nil, fmt.Errorf("reading the policy file as YAML: %w", err)
		}
		if content != nil {
			return document, nil
		}
	}
}

// countDocuments counts the documents that are not empty. It reads to the end, where decoding a single document would
// not look at what follows a `...` line.
func countDocuments(data []byte) (int, error) {
	stream := yamlv2.NewDecoder(bytes.NewReader(data))
	count := 0
	for {
		var content any
		err := stream.Decode(&content)
		if errors.Is(err, io.EOF) {
			return count, nil
		}
		if err != nil {
			return 0, fmt.Errorf("reading the policy file as YAML: %w", err)
		}
		if content != nil {
			count++
		}
	}
}

// duplicateFields reports fields that stand twice in one map. YAML forbids them, and of two values one would silently
// win.
func duplicateFields(document []byte) (field.ErrorList, error) {
	// Of all that the library decodes into, only a MapSlice keeps both.
	var content yamlv2.MapSlice
	if err := yamlv2.Unmarshal(document, &content); err != nil {
		return nil, fmt.Errorf("reading the policy file as YAML: %w", err)
	}
	return duplicatesIn(nil, content), nil
}

func duplicatesIn(path *field.Path, value any) field.ErrorList {
	var faults field.ErrorList
	switch value := value.(type) {
	case yamlv2.MapSlice:
		seen := make(map[string]bool, len(value))
		for _, item := range value {
			name := fmt.Sprint(item.Key)
			if seen[name] {
				fault := field.Duplicate(child(path, name), field.OmitValueType{})
				fault.Detail = "the field is there twice; keep one of the two"
				faults = append(faults, fault)
			}
			seen[name] = true
			faults = append(faults, duplicatesIn(child(path, name), item.Value)...)
		}
	case []any:
		for i, element := range value {
			faults = append(faults, duplicatesIn(path.Index(i), element)...)
		}
	}
	return faults
}
