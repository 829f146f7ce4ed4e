package amd

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// smiFields are what rocm-smi says of one device, by the names that it prints. A name is spelled differently by version
// ("Card series", "Card Series"), and a value that the driver does not tell is "N/A".
type smiFields map[string]string

// parseROCmSMI reads rocm-smi's JSON, CSV or text, whichever it is, into fields by device number. Warnings may stand before
// or within it.
func parseROCmSMI(text []byte) map[int]smiFields {
	for _, parse := range []func([]byte) map[int]smiFields{smiJSON, smiCSV, smiText} {
		if devices := parse(text); len(devices) > 0 {
			return devices
		}
	}
	return nil
}

var smiCard = regexp.MustCompile(`^card(\d{1,4})$`)

func smiJSON(text []byte) map[int]smiFields {
	_, rest, found := strings.Cut("\n"+string(text), "\n{") // on a line of its own: a warning may have braces
	if !found {
		return nil
	}
	var document map[string]json.RawMessage
	if err := json.NewDecoder(strings.NewReader("{" + rest)).Decode(&document); err != nil {
		return nil
	}
	devices := map[int]smiFields{}
	for name, raw := range document {
		number, isCard := cardNumber(name)
		var values map[string]any
		if !isCard || json.Unmarshal(raw, &values) != nil {
			continue // "system", which is no card
		}
		fields := smiFields{}
		for key, value := range values {
			if s, isText := value.(string); isText { // rocm-smi quotes numbers, too
				fields[key] = strings.TrimSpace(s)
			}
		}
		devices[number] = fields
	}
	return devices
}

func cardNumber(name string) (int, bool) {
	match := smiCard.FindStringSubmatch(name)
	if match == nil {
		return 0, false
	}
	n, err := strconv.Atoi(match[1])
	return n, err == nil
}

func smiCSV(text []byte) map[int]smiFields {
	_, table, found := strings.Cut("\n"+string(text), "\ndevice,")
	if !found {
		return nil
	}
	reader := csv.NewReader(strings.NewReader("device," + table))
	reader.FieldsPerRecord, reader.LazyQuotes = -1, true
	rows, err := reader.ReadAll()
	if err != nil {
		return nil
	}
	devices := map[int]smiFields{}
	for _, row := range rows[1:] {
		number, isCard := cardNumber(row[0])
		if !isCard {
			continue
		}
		devices[number] = smiFields{}
		for i, key := range rows[0] {
			if i < len(row) {
				devices[number][strings.TrimSpace(key)] = strings.TrimSpace(row[i])
			}
		}
	}
	return devices
}

var smiLine = regexp.MustCompile(`^GPU\[(\d{1,4})\]\s*:\s*(.+?):\s*(.*)$`)

func smiText(text []byte) map[int]smiFields {
	devices := map[int]smiFields{}
	for line := range strings.Lines(string(text)) {
		match := smiLine.FindStringSubmatch(strings.TrimSpace(line))
		if match == nil {
			continue
		}
		number, err := strconv.Atoi(match[1])
		if err != nil {
			continue
		}
		if devices[number] == nil {
			devices[number] = smiFields{}
		}
		devices[number][match[2]] = match[3]
	}
	return devices
}

// first is the value under the first name that has one.
func (s smiFields) first(names ...string) string {
	for _, name := range names {
		if v := s[name]; v != "" && v != "N/A" {
			return v
		}
	}
	return ""
}

// rocmUnits makes a unit of each physical card. The parts of a partitioned card are devices of their own to rocm-smi, of
// which each repeats the whole card's memory: they share a PCI bus and device, and may be functions of it.
func rocmUnits(devices map[int]smiFields) []unit {
	var units []unit
	known := map[string]int{} // index in units by bus and device
	for _, number := range slices.Sorted(maps.Keys(devices)) {
		u := rocmUnit(number, devices[number])
		physical, _, _ := strings.Cut(u.device.PCI, ".")
		if i, again := known[physical]; again && physical != "" {
			units[i].devices++
			continue
		}
		known[physical] = len(units)
		units = append(units, u)
	}
	return units
}

func rocmUnit(number int, s smiFields) unit {
	u := unit{source: hwprobe.SourceROCmSMI, devices: 1}
	u.memory = memory{
		vramTotal: hwprobe.Size(source.ParseUint(s["VRAM Total Memory (B)"])), vramUsed: source.ParseUint(s["VRAM Total Used Memory (B)"]),
		gttTotal: hwprobe.Size(source.ParseUint(s["GTT Total Memory (B)"])), gttUsed: source.ParseUint(s["GTT Total Used Memory (B)"]),
	}
	// "Card Model" is the PCI device of new versions; "Card model" of old ones is the board's, or "0x1002".
	if id, isHex := strings.CutPrefix(s.first("Device ID", "GPU ID", "Card Model"), "0x"); isHex && len(id) == 4 {
		u.id = "1002:" + strings.ToLower(id)
	}
	d := hwprobe.Device{ID: fmt.Sprintf("gpu:amd-%d", number), Vendor: hwprobe.AMD, Driver: "amdgpu", State: hwprobe.StateOK}
	if address, ok := hwprobe.PCIAddress(s["PCI Bus"]); ok {
		d.PCI, d.ID = address, "gpu:"+address
	}
	d.UUID = s.first("Unique ID")
	if d.Name = s.first("Card Series", "Card series", "Device Name"); d.Name == "" || strings.HasPrefix(d.Name, "0x") {
		d.Name = nameByID(u.id)
	}
	d.Integrated = rocmIntegrated(u.id, s)
	d.Utilisation = percent(source.ParseNumber(s["GPU use (%)"]))
	d.Temperature = source.ParseNumber(s["Temperature (Sensor edge) (C)"])
	d.Power = source.ParseNumber(s.first("Average Graphics Package Power (W)", "Current Socket Graphics Package Power (W)"))
	u.device, u.why = d, "rocm-smi does not tell the memory's size"
	return u
}

// rocmIntegrated tells an APU from a card by what the chip is, else by what only a card has: memory chips of a maker, and
// sensors in them.
func rocmIntegrated(id string, s smiFields) hwprobe.Flag {
	if flag := chip(id, s.first("GFX Version")); flag != (hwprobe.Flag{}) {
		return flag
	}
	if flag := chipNamed(s.first("Card Series", "Card series", "Device Name"), s.first("Card SKU")); flag != (hwprobe.Flag{}) {
		return flag
	}
	if s.first("GPU memory vendor", "Temperature (Sensor memory) (C)", "Temperature (Sensor junction) (C)") != "" {
		return hwprobe.Known(false)
	}
	return hwprobe.Flag{}
}
