package nvidia

import (
	"math"
	"regexp"
	"strings"
	"unicode"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// The fields asked of nvidia-smi. The basic ones have existed for a decade; one unknown field fails a whole query, so the
// newer ones, which only tell unified memory and partitions, are left out when the driver is too old for them.
const (
	basicFields = "uuid,name,pci.bus_id,driver_version,memory.total,memory.free,utilization.gpu,temperature.gpu,power.draw"
	allFields   = basicFields + ",addressing_mode,mig.mode.current"
)

// smiRow is one device of nvidia-smi's CSV: cells by field name, without unit in the name.
type smiRow struct {
	cells map[string]string
	units map[string]string // of the header, for output without units in the cells
}

// parseSMI reads nvidia-smi's CSV by the names in its header, whatever their order. Lines that are no rows, such as an
// error about one lost card among healthy ones, come back as rest.
func parseSMI(output string) (rows []smiRow, rest string) {
	var names []string
	var units map[string]string
	var noise strings.Builder
	for line := range strings.Lines(output) {
		cells := strings.Split(line, ",") // the CSV has no quoting
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case names == nil && isSMIHeader(cells):
			names, units = splitHeader(cells)
		case len(names) > 0 && len(cells) == len(names):
			row := smiRow{cells: make(map[string]string, len(names)), units: units}
			for i, name := range names {
				row.cells[name] = cells[i]
			}
			rows = append(rows, row)
		default:
			noise.WriteString(line)
		}
	}
	return rows, noise.String()
}

// isSMIHeader recognises the header by the fields that every query of a probe has.
func isSMIHeader(cells []string) bool {
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

// noValue are the cells, stripped of brackets, that say that there is no value. Each is squeezed, see squeeze.
var noValue = map[string]bool{
	"": true, "n/a": true, "notsupported": true, "insufficientpermissions": true, "unknownerror": true, "err!": true,
	"gpuislost": true, "gpurequiresreset": true, "requestedfunctionalityhasbeendeprecated": true, "none": true,
}

// text returns a cell's text, empty when there is no value.
func (r smiRow) text(field string) string {
	cell := r.cells[field]
	if noValue[bare(cell)] {
		return ""
	}
	return cell
}

// number returns a cell's number; its unit, if any, is what the caller's field has.
func (r smiRow) number(field string) hwprobe.Number {
	value, _, _ := strings.Cut(r.text(field), " ")
	return source.ParseNumber(value)
}

// bytes returns a cell's memory size. nvidia-smi gives MiB, also where it prints no unit; another unit is not guessed at.
func (r smiRow) bytes(field string) hwprobe.Bytes {
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

// notSupported says whether the cell was asked for and the driver has no such thing on this device, which is different
// from an error and from missing rights.
func (r smiRow) notSupported(field string) bool {
	cell, asked := r.cells[field]
	return asked && (bare(cell) == "n/a" || bare(cell) == "notsupported")
}

// says reports whether any cell is this error, such as "gpuislost".
func (r smiRow) says(what string) bool {
	for _, cell := range r.cells {
		if bare(cell) == what {
			return true
		}
	}
	return false
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

// smiFailure is one way in which nvidia-smi fails, told by its text: exit codes differ between versions.
type smiFailure struct {
	text  string // squeezed, see squeeze
	code  hwprobe.WarningCode
	state hwprobe.State // of the cards that it is about
	next  string
}

var smiFailures = []smiFailure{
	{"driver/libraryversionmismatch", hwprobe.WarnDriverMismatch, hwprobe.StateDegraded,
		"the driver was upgraded under a running kernel: reboot, or unload and reload the nvidia kernel modules"},
	{"couldn'tcommunicatewiththenvidiadriver", hwprobe.WarnDriverNotLoaded, hwprobe.StateDegraded,
		"load the driver (modprobe nvidia) or reinstall it for the running kernel, then see dmesg"},
	{"couldn'tfindlibnvidia-ml", hwprobe.WarnDriverNotLoaded, hwprobe.StateDegraded,
		"install the driver's user libraries, or give the container the utility capability of the NVIDIA container toolkit"},
	{"drivernotloaded", hwprobe.WarnDriverNotLoaded, hwprobe.StateDegraded,
		"load the driver (modprobe nvidia) or reinstall it for the running kernel, then see dmesg"},
	{"gpuaccessblockedbytheoperatingsystem", hwprobe.WarnAccessLost, hwprobe.StateDegraded,
		"update Windows, WSL (wsl --update) and the Windows driver, then run wsl --shutdown"},
	{"failedtoinitializenvml:unknownerror", hwprobe.WarnAccessLost, hwprobe.StateDegraded,
		"the container lost its devices, as happens after systemctl daemon-reload: restart the container"},
	{"insufficientpermissions", hwprobe.WarnNoPermission, hwprobe.StateDegraded,
		"let this user open /dev/nvidia*, or run the container with access to the GPU"},
	{"gpuislost", hwprobe.WarnDeviceLost, hwprobe.StateLost, "reboot; if it happens again check power, cooling and the card's seat"},
	{"unabletodeterminethedevicehandle", hwprobe.WarnDeviceLost, hwprobe.StateLost,
		"see dmesg for Xid errors, then reboot; if it happens again check power, cooling and the card's seat"},
	{"nodeviceswerefound", hwprobe.WarnDriverNotLoaded, hwprobe.StateDegraded,
		"see dmesg: the driver is loaded but could not start the card"},
}

// classifySMI finds the failure that the text tells; the last resort says only that the tool failed.
func classifySMI(text string) smiFailure {
	squeezed := squeeze(text)
	for _, failure := range smiFailures {
		if strings.Contains(squeezed, failure.text) {
			return failure
		}
	}
	return smiFailure{code: hwprobe.WarnToolFailed, state: hwprobe.StateDegraded, next: "run nvidia-smi by hand on this machine and look at what it prints"}
}

// smiTooOld says whether the driver does not know one of the fields.
func smiTooOld(text string) bool { return strings.Contains(squeeze(text), "isnotavalidfieldtoquery") }

var smiAddress = regexp.MustCompile(`GPU\s*([0-9a-fA-F]{1,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])`)

// failedAddresses returns the PCI addresses that a failure's text names.
func failedAddresses(text string) []string {
	var addresses []string
	for _, match := range smiAddress.FindAllStringSubmatch(text, -1) {
		if address, ok := hwprobe.PCIAddress(match[1]); ok {
			addresses = append(addresses, address)
		}
	}
	return addresses
}
