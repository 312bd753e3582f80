package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/syncpass/syncpass/e2e/cluster"
)

// asTable asks the API server for the columns that kubectl shows: it is the server
// that makes them.
const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io"

// kinds of the demo, as resource and as the prefix that kubectl puts before names.
var kinds = []struct{ resource, prefix string }{
	{"configmaps", "configmap/"}, {"secrets", "secret/"}, {"services", "service/"}, {"pods", "pod/"},
}

// printObjects prints the demo's kinds in one namespace as `kubectl get` does: all
// that carry the label, or, if names are given, only those.
func printObjects(ctx context.Context, out io.Writer, c *cluster.Cluster, namespace, selector string, names ...string) error {
	for i, kind := range kinds {
		if i > 0 {
			fmt.Fprintln(out)
		}
		path := "/api/v1/namespaces/" + namespace + "/" + kind.resource
		if err := printTable(ctx, out, c, path, selector, kind.prefix, names...); err != nil {
			return err
		}
	}
	return nil
}

func printTable(ctx context.Context, out io.Writer, c *cluster.Cluster, path, selector, prefix string, names ...string) error {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	data, err := client.Discovery().RESTClient().Get().AbsPath(path).
		Param("labelSelector", selector).SetHeader("Accept", asTable).Do(ctx).Raw()
	if err != nil {
		return fmt.Errorf("reading %s of cluster %s: %w", path, c.Name, err)
	}
	table := &metav1.Table{}
	if err := json.Unmarshal(data, table); err != nil {
		return fmt.Errorf("decoding the table of %s: %w", path, err)
	}
	return writeTable(out, table, prefix, names)
}

// writeTable writes the columns that kubectl shows without -o wide. The first one
// is the name.
func writeTable(out io.Writer, table *metav1.Table, prefix string, names []string) error {
	columns := newColumns(out)
	var header []string
	for _, column := range table.ColumnDefinitions {
		if column.Priority == 0 {
			header = append(header, strings.ToUpper(column.Name))
		}
	}
	fmt.Fprintln(columns, strings.Join(header, "\t"))
	for _, row := range table.Rows {
		if len(names) > 0 && !slices.Contains(names, fmt.Sprint(row.Cells[0])) {
			continue
		}
		var cells []string
		for i, cell := range row.Cells {
			if table.ColumnDefinitions[i].Priority != 0 {
				continue
			}
			if cell == nil {
				cell = ""
			}
			cells = append(cells, fmt.Sprint(cell))
		}
		fmt.Fprintln(columns, prefix+strings.Join(cells, "\t"))
	}
	return columns.Flush()
}

func newColumns(out io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(out, 0, 8, 3, ' ', 0) }
