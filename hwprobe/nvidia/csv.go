package nvidia

import "strings"

// parseCSV reads nvidia-smi's CSV by the names in its header, whatever their order. Lines that are no rows, such as an
// error about one lost card among healthy ones, come back as rest.
func parseCSV(output string) (rows []row, rest string) {
	var names []string
	var units map[string]string
	var noise strings.Builder
	for line := range strings.Lines(output) {
		cells := strings.Split(line, ",") // the CSV has no quoting
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case names == nil && isHeader(cells):
			names, units = splitHeader(cells)
		case len(names) > 0 && len(cells) == len(names):
			r := row{cells: make(map[string]string, len(names)), units: units}
			for i, name := range names {
				r.cells[name] = cells[i]
			}
			rows = append(rows, r)
		default:
			noise.WriteString(line)
		}
	}
	return rows, noise.String()
}

// isHeader recognises the header by the fields that every query of a probe has.
func isHeader(cells []string) bool {
	for _, cell := range cells {
		if name, _, _ := strings.Cut(cell, " "); name == "memory.total" || name == "name" {
			return true
		}
	}
	return false
}

func splitHeader(cells []string) (names []string, units map[string]string) {
	units = map[string]string{}
	for _, cell := range cells {
		name, unit, _ := strings.Cut(cell, " ")
		names = append(names, name)
		units[name] = strings.Trim(unit, "[]")
	}
	return names, units
}
