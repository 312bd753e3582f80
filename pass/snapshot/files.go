package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// maxFaults bounds how many faults of files are told at a time: a folder of something else entirely has one in each.
const maxFaults = 20

// Files are the objects of one side as YAML and JSON files have them.
type Files struct {
	objects []FileObject
	defined map[schema.GroupVersionKind]metav1.APIResource
}

// FileObject is an object, and where it stands.
type FileObject struct {
	*unstructured.Unstructured
	// Where names the file, the document in it and the item of a list, counted from one.
	Where string
}

// key is what there can be one of on a side.
type key struct {
	kind schema.GroupKind
	name types.NamespacedName
}

func (o FileObject) key() key {
	return key{o.GroupVersionKind().GroupKind(), types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}}
}

// ReadFiles reads all objects of a file, or of the .yaml, .yml and .json files of a folder at any depth, names that begin
// with a dot left out: documents of one object each, and lists, as `kubectl get -o yaml` and `-o json` print them. An object
// of a namespaced kind that names no namespace is in default, as for kubectl. All faults are reported together, each with
// the file, the document, the cause and the next step.
func ReadFiles(path string) (*Files, error) {
	names, err := fileNames(path)
	if err != nil {
		return nil, err
	}
	f := &Files{}
	var faults []error
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			faults = append(faults, fmt.Errorf("%w; make it readable, or leave it out of the folder", err))
			continue
		}
		faults = append(faults, f.read(name, data)...)
	}
	faults = append(faults, f.place()...)
	if more := len(faults) - maxFaults; more > 0 {
		faults = append(faults[:maxFaults], fmt.Errorf("%s: and %d faults more; is it the right folder?", path, more))
	}
	return f, errors.Join(faults...)
}

// fileNames are the files to be read, in lexical order.
func fileNames(path string) ([]string, error) {
	var names []string
	err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		hidden := name != path && strings.HasPrefix(entry.Name(), ".")
		switch {
		case err != nil:
			return err
		case entry.IsDir() && hidden:
			return fs.SkipDir
		case entry.IsDir(), hidden:
		case name == path, slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(name))):
			names = append(names, name)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w; name a folder of YAML or JSON files, or one such file", err)
	case len(names) == 0:
		return nil, fmt.Errorf("%s: there is no .yaml, .yml or .json file in it; `kubectl get -o yaml` prints what belongs there", path)
	}
	return names, nil
}

// read adds the objects of a file.
func (f *Files) read(name string, data []byte) []error {
	var faults []error
	for i, document := range documents(data) {
		where := fmt.Sprintf("%s: document %d", name, i+1)
		content, err := decode(document)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", where, err))
			continue
		}
		if content != nil {
			faults = append(faults, f.addDocument(where, content)...)
		}
	}
	return faults
}

// documents splits a YAML stream. At the start of a line, `---` and `...` cannot be anything but the end of a document,
// whatever the document holds. What comes before the first is one only if there is anything in it.
func documents(data []byte) [][]byte {
	var all [][]byte
	start, at := 0, 0
	for line := range bytes.Lines(data) {
		if ends, separates := marker(line, "..."), marker(line, "---"); ends || separates {
			all, start = append(all, data[start:at]), at
			if ends {
				start += len(line)
			}
		}
		at += len(line)
	}
	all = append(all, data[start:])
	if len(all) > 1 && isBlank(all[0]) {
		return all[1:]
	}
	return all
}

func marker(line []byte, mark string) bool {
	rest, found := bytes.CutPrefix(line, []byte(mark))
	return found && (len(rest) == 0 || bytes.ContainsRune([]byte(" \t\r\n"), rune(rest[0])))
}

// isBlank says whether a document holds nothing but comments.
func isBlank(document []byte) bool {
	for line := range bytes.Lines(document) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

// decode reads one document, nil where there is nothing in it.
func decode(document []byte) (map[string]any, error) {
	asJSON, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, fmt.Errorf("it is no YAML: %w; correct it, or leave the file out of the folder", err)
	}
	var content any
	if err := utiljson.Unmarshal(asJSON, &content); err != nil {
		return nil, fmt.Errorf("it is no YAML that an API server takes: %w; correct it, or leave the file out of the folder", err)
	}
	switch content := content.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return content, nil
	}
	return nil, errors.New("it holds no object; objects have apiVersion, kind and metadata, as `kubectl get -o yaml` prints them")
}

// addDocument adds the object that a document holds, or those of the list that it holds.
func (f *Files) addDocument(where string, content map[string]any) []error {
	items, isList := content["items"].([]any)
	listKind, _ := content["kind"].(string)
	if itemKind, ok := strings.CutSuffix(listKind, "List"); isList && ok {
		var faults []error
		for i, item := range items {
			at := fmt.Sprintf("%s: item %d", where, i+1)
			object, ok := item.(map[string]any)
			if !ok {
				faults = append(faults, fmt.Errorf("%s: it is no object; take it out of the list", at))
				continue
			}
			if itemKind != "" { // the items of a typed list need not say what they are
				setDefault(object, "kind", itemKind)
				setDefault(object, "apiVersion", content["apiVersion"])
			}
			faults = append(faults, f.addObject(at, object)...)
		}
		return faults
	}
	return f.addObject(where, content)
}

func setDefault(object map[string]any, field string, value any) {
	if _, there := object[field]; !there {
		object[field] = value
	}
}

// addObject adds an object that says what it is.
func (f *Files) addObject(where string, content map[string]any) []error {
	object := FileObject{&unstructured.Unstructured{Object: content}, where}
	kind, _ := content["kind"].(string)
	apiVersion, _ := content["apiVersion"].(string)
	_, versionErr := schema.ParseGroupVersion(apiVersion)
	name := object.GetName()
	given, _, _ := unstructured.NestedFieldNoCopy(content, "metadata", "name")
	_, isText := given.(string)
	cause := ""
	switch {
	case kind == "" || apiVersion == "":
		cause = "it names no apiVersion and kind; give it both, as `kubectl get -o yaml` prints them, or leave files that hold no objects out of the folder"
	case versionErr != nil:
		cause = fmt.Sprintf("its apiVersion %q is none; it has the form group/version, or v1", clip(apiVersion))
	case given != nil && !isText:
		cause = fmt.Sprintf("the metadata.name of this %s is no text but %s; put it in quotes", clip(kind), clip(fmt.Sprintf("%q", fmt.Sprint(given))))
	case name == "":
		cause = fmt.Sprintf("this %s has no metadata.name; give it the name that it has in the cluster", clip(kind))
	case len(rest.IsValidPathSegmentName(name)) > 0 || strings.ContainsFunc(name, unnameable):
		cause = fmt.Sprintf("this %s is named %q, which no API server takes; correct metadata.name", clip(kind), clip(name))
	case object.GetNamespace() != "" && len(utilvalidation.IsDNS1123Label(object.GetNamespace())) > 0:
		cause = fmt.Sprintf("%s %s is in a namespace %q, which no API server takes; correct metadata.namespace", clip(kind), name, clip(object.GetNamespace()))
	default:
		f.objects = append(f.objects, object)
		return nil
	}
	return []error{fmt.Errorf("%s: %s", where, cause)}
}

// place finishes what takes all objects to know: which kinds are namespaced, and whether an object is there twice.
func (f *Files) place() []error {
	f.defined = definitions(f.objects)
	inNone := map[schema.GroupKind]bool{}
	for kind, resource := range f.defined {
		inNone[kind.GroupKind()] = !resource.Namespaced
	}
	var faults []error
	seen := map[key]string{}
	for _, object := range f.objects {
		kind := object.GroupVersionKind().GroupKind()
		if object.GetNamespace() == "" && !clusterScoped[kind] && !inNone[kind] {
			object.SetNamespace(metav1.NamespaceDefault)
		}
		fold(object)
		if first, twice := seen[object.key()]; twice {
			faults = append(faults, fmt.Errorf("%s: %s %s is in %s already; keep one of the two",
				object.Where, kind.Kind, strings.TrimPrefix(object.key().name.String(), "/"), first))
		}
		seen[object.key()] = object.Where
	}
	return faults
}

// Of are the objects of a kind, in whatever version, in the order of the files.
func (f *Files) Of(kind schema.GroupKind) []FileObject {
	var found []FileObject
	for _, object := range f.objects {
		if object.GroupVersionKind().GroupKind() == kind {
			found = append(found, object)
		}
	}
	return found
}

// All are all objects, in the order of the files.
func (f *Files) All() []FileObject { return slices.Clone(f.objects) }
