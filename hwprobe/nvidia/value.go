package nvidia

import (
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// row is what nvidia-smi tells of one device: cells by the name of the CSV field, wherever they come from.
type row struct {
	cells map[string]string
	units map[string]string // of a CSV's header, for cells without a unit
}

// noValue are the cells, see bare, that say that there is no value, or that it could not be read.
var noValue = []string{
	"", "n/a", "none", "notsupported", "insufficientpermissions", "unknownerror", "err!", "gpuislost", "gpurequiresreset",
	"requestedfunctionalityhasbeendeprecated",
}

// text returns a cell's text, empty when there is no value. Drivers from 610 on put a remark about the field's future into
// its value: "610.62 [Deprecated; will be removed in CUDA 14.0. …]".
func (r row) text(field string) string {
	cell, _, _ := strings.Cut(r.cells[field], " [Deprecated")
	if b := bare(cell); slices.Contains(noValue, b) || strings.HasPrefix(b, "deprecated") {
		return ""
	}
	return cell
}

// number returns a cell's number where it lies within the limits; its unit, if any, is what the caller's field has.
func (r row) number(field string, least, most float64) hwprobe.Number {
	value, _, _ := strings.Cut(r.text(field), " ")
	n := source.ParseNumber(value)
	if v, known := n.Value(); !known || v < least || v > most {
		return hwprobe.Number{}
	}
	return n
}

// bytes returns a cell's memory size. nvidia-smi gives MiB, also where it prints no unit; another unit is not guessed at.
func (r row) bytes(field string) hwprobe.Bytes {
	const mebibyte = 1 << 20
	value, unit, _ := strings.Cut(r.text(field), " ")
	if unit == "" {
		unit = r.units[field]
	}
	n, known := source.ParseUint(value).Value()
	if !known || n > math.MaxUint64/mebibyte || (unit != "" && unit != "MiB") {
		return hwprobe.Bytes{}
	}
	return hwprobe.Known(n * mebibyte)
}

// memory returns total and free, both unknown where they are impossible.
func (r row) memory() (total, free hwprobe.Bytes) {
	total, free = hwprobe.Size(r.bytes("memory.total")), r.bytes("memory.free")
	if total == (hwprobe.Bytes{}) || free.Or(0) > total.Or(0) {
		return hwprobe.Bytes{}, hwprobe.Bytes{}
	}
	return total, free
}

// address is the normalised PCI address, empty where it is not told: a Jetson's GPU has none.
func (r row) address() string {
	address, _ := hwprobe.PCIAddress(r.text("pci.bus_id"))
	return address
}

// notSupported says whether the cell was asked for and the driver has no such thing on this device, which is different
// from an error and from missing rights.
func (r row) notSupported(field string) bool {
	cell, asked := r.cells[field]
	return asked && (bare(cell) == "n/a" || bare(cell) == "notsupported")
}

// says reports whether any cell is this error, such as "gpuislost".
func (r row) says(what string) bool {
	for _, cell := range r.cells {
		if bare(cell) == what {
			return true
		}
	}
	return false
}

// completed returns the row with the other one's value for each cell that has none.
func (r row) completed(by row) row {
	full := row{cells: map[string]string{}, units: r.units}
	for field, cell := range r.cells {
		full.cells[field] = cell
	}
	for field := range by.cells {
		if value := by.text(field); value != "" && r.text(field) == "" {
			full.cells[field] = value
		}
	}
	return full
}

func bare(cell string) string { return squeeze(strings.Trim(cell, "[]")) }

// squeeze makes text comparable: lower case and no white space, because consoles wrap messages anywhere.
func squeeze(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, text)
}
