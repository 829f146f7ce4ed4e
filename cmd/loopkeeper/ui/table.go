package ui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Column is a column's head and which way it is aligned.
type Column struct {
	Head  string
	Right bool // for numbers
}

// Table is rows under heads: no boxes, two spaces between columns.
type Table struct {
	Columns []Column
	Rows    [][]string
}

// Columns makes columns from heads; one that starts with > is aligned right.
func Columns(heads ...string) []Column {
	var out []Column
	for _, h := range heads {
		text, right := strings.CutPrefix(h, ">")
		out = append(out, Column{text, right})
	}
	return out
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// String is the table as text; nothing is cut.
func (t *Table) String() string {
	widths := make([]int, len(t.Columns))
	head := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		head[i], widths[i] = c.Head, ansi.StringWidth(c.Head)
	}
	for _, row := range t.Rows {
		for i, cell := range row {
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	var b strings.Builder
	for _, row := range append([][]string{head}, t.Rows...) {
		var line strings.Builder
		for i, cell := range row {
			if i > 0 {
				line.WriteString("  ")
			}
			pad := strings.Repeat(" ", widths[i]-ansi.StringWidth(cell))
			if t.Columns[i].Right {
				line.WriteString(pad + cell)
			} else {
				line.WriteString(cell + pad)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}
