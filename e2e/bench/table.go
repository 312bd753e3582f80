package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// print writes the table, and below it the bars.
func (r *results) print(out io.Writer) error {
	fmt.Fprintf(out, "%s\n\n", r.Machine)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "row\twall s\tfloor s\t× floor\tloop s\t× faster\trequests\twrites\thost MB\ttenant MB\tCPU s\tpeak MB\trecord KiB\tbars\t")
	for _, row := range r.Rows {
		writes, host, tenant := "-", "-", "-"
		if row.Observed {
			writes, host, tenant = fmt.Sprint(row.Writes), megabytes(row.BytesHost), megabytes(row.BytesTenant)
		}
		fmt.Fprintf(table, "%s\t%.2f\t%s\t%.1f\t%s\t%.1f\t%d\t%s\t%s\t%s\t%.2f\t%.0f\t%d\t%s\t\n",
			row.Name, row.WallSeconds, estimate(row.FloorSeconds, row.FloorExtrapolated, 2), ratio(row.WallSeconds, row.FloorSeconds),
			estimate(row.LoopSeconds, row.LoopExtrapolated, 1), ratio(row.LoopSeconds, row.WallSeconds),
			row.Requests, writes, host, tenant, row.CPUSeconds, float64(row.PeakRSSBytes)/megabyte, row.RecordBytes/kibibyte,
			verdict(r.Bars, row.Name))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out, "\n~ measured on a part of the objects and extrapolated. Medians; writes are those of a whole pass but its Lease.")
	if len(r.Bars) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	list := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, bar := range r.Bars {
		mark := "ok"
		if !bar.OK {
			mark = "MISSED"
		}
		fmt.Fprintf(list, "%s\t%s\t%s\t%s\n", mark, bar.Row, bar.Bar, bar.Measured)
	}
	return list.Flush()
}

func estimate(seconds float64, extrapolated bool, digits int) string {
	mark := ""
	if extrapolated {
		mark = "~"
	}
	return fmt.Sprintf("%s%.*f", mark, digits, seconds)
}

// ratio is 0 where there is nothing to compare with.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func megabytes(bytes int64) string { return fmt.Sprintf("%.1f", float64(bytes)/megabyte) }
