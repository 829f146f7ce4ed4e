package ui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Column is a column's head, which way it is aligned, and how it gives way where a line has not room for all.
type Column struct {
	Head  string
	Right bool // for numbers
	Give  Give
}

// Give says how the cells of a column give way. Ids, states and numbers never do.
type Give int

// The ways.
const (
	Never Give = iota
	Cut        // a name: shortened in the middle, which keeps its end
	Wrap       // a sentence: goes on in the next line
)

// leastCell is how narrow a column that gives way can become.
const leastCell = 8

// Table is rows under heads: no boxes, two spaces between columns.
type Table struct {
	Width   int // cells of a line, 0 for no bound
	Columns []Column
	Rows    [][]string
}

// Columns makes columns from heads; one that starts with > is aligned right, one with / is Cut, one with ~ is Wrap.
func Columns(heads ...string) []Column {
	var out []Column
	for _, h := range heads {
		c := Column{Head: h}
		for _, mark := range []string{">", "/", "~"} {
			text, marked := strings.CutPrefix(c.Head, mark)
			if !marked {
				continue
			}
			c.Head = text
			switch mark {
			case ">":
				c.Right = true
			case "/":
				c.Give = Cut
			default:
				c.Give = Wrap
			}
		}
		out = append(out, c)
	}
	return out
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// String is the table as text. Without a width nothing is cut.
func (t *Table) String() string {
	head := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		head[i] = c.Head
	}
	widths := t.widths(append([][]string{head}, t.Rows...))
	var b strings.Builder
	for _, row := range append([][]string{head}, t.Rows...) {
		t.row(&b, row, widths)
	}
	return b.String()
}

// widths are the widest cells; where they have not room side by side, the widest column that can give way does.
func (t *Table) widths(rows [][]string) []int {
	widths := make([]int, len(t.Columns))
	total := 2 * (len(t.Columns) - 1)
	for i := range t.Columns {
		for _, row := range rows {
			widths[i] = max(widths[i], ansi.StringWidth(row[i]))
		}
		total += widths[i]
	}
	for ; t.Width > 0 && total > t.Width; total-- {
		widest := -1
		for i, c := range t.Columns {
			if c.Give != Never && widths[i] > max(leastCell, ansi.StringWidth(c.Head)) && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths
}

// row prints one row, in as many lines as its longest sentence needs.
func (t *Table) row(b *strings.Builder, cells []string, widths []int) {
	parts := make([][]string, len(cells))
	lines := 1
	for i, cell := range cells {
		switch {
		case ansi.StringWidth(cell) <= widths[i]:
			parts[i] = []string{cell}
		case t.Columns[i].Give == Cut:
			parts[i] = []string{Middle(cell, widths[i])}
		default:
			parts[i] = strings.Split(wrapped(cell, widths[i]), "\n")
		}
		lines = max(lines, len(parts[i]))
	}
	for l := range lines {
		var line strings.Builder
		for i := range cells {
			cell := ""
			if l < len(parts[i]) {
				cell = parts[i][l]
			}
			if i > 0 {
				line.WriteString("  ")
			}
			pad := strings.Repeat(" ", max(widths[i]-ansi.StringWidth(cell), 0))
			if t.Columns[i].Right {
				line.WriteString(pad + cell)
			} else {
				line.WriteString(cell + pad)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// sentence cuts a text at its end, between two words.
func sentence(s string, width int) string {
	if width <= 0 || ansi.StringWidth(s) <= width {
		return s
	}
	if width < leastCell {
		return ansi.Truncate(s, width, "")
	}
	cut := ansi.Truncate(s, width-3, "")
	if at := strings.LastIndexByte(cut, ' '); at > len(cut)/2 {
		cut = strings.TrimRight(cut[:at], " ")
	}
	return cut + "..."
}

// wrapped breaks a sentence between words, which are never broken: one that has not room in a line of its own is a name and is
// shortened like one.
func wrapped(s string, width int) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		word = Middle(word, width)
		switch {
		case line == "":
			line = word
		case ansi.StringWidth(line)+1+ansi.StringWidth(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return strings.Join(append(lines, line), "\n")
}
