package amd

import (
	"regexp"
	"strings"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// The two lines that amd-smi's table has of each device.
//
//	| 0000:03:00.0 ...Radeon AI PRO R9700 | 0 %      30 °C   0            32/300 W |
//	|   0       0     N/A             N/A | 8 %     24.71              57/30576 MB |
var (
	amdSMIFirst  = regexp.MustCompile(`^\|\s*([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])\s+(.+?)\s*\|\s*(?:N/A|\d+\s*%)\s+(?:N/A|(\d+)\s*°C)\s+\S+\s+(?:N/A|(\d+))/(?:N/A|\d+)\s*W\s*\|$`)
	amdSMISecond = regexp.MustCompile(`^\|\s*\d+\s+\S+\s+\S+\s+\S+\s*\|\s*(?:N/A|(\d+)\s*%)\s+(?:N/A|([0-9.]+)\s*%?)\s+(?:N/A|\d+)/(?:N/A|\d+)\s*MB\s*\|$`)
)

// amdSMIUnits reads the table that amd-smi prints when it is asked nothing. Its memory is not taken: the total was
// 30576 MB for a card of 32 GB (ROCm/legacy-rocm-build#5832), and a wrong total is worse than none.
func amdSMIUnits(text []byte) []unit {
	var units []unit
	var open bool // whether the line before was a device's first
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if first := amdSMIFirst.FindStringSubmatch(line); first != nil {
			if u, ok := amdSMIUnit(first); ok {
				units, open = append(units, u), true
				continue
			}
		}
		if second := amdSMISecond.FindStringSubmatch(line); second != nil && open {
			d := &units[len(units)-1].device
			d.Utilisation = percent(source.ParseNumber(second[1]))
			if second[2] != "" { // only a card has a fan of its own
				d.Integrated = hwprobe.Known(false)
			}
		}
		open = false
	}
	return units
}

func amdSMIUnit(first []string) (unit, bool) {
	address, ok := hwprobe.PCIAddress(first[1])
	if !ok {
		return unit{}, false
	}
	name := strings.TrimPrefix(first[2], "...") // the table cuts long names at their beginning
	return unit{devices: 1, why: "of the tools only amd-smi answers, and its memory sizes are wrong on some cards", device: hwprobe.Device{
		ID: "gpu:" + address, Vendor: hwprobe.AMD, Name: name, PCI: address, Driver: "amdgpu", State: hwprobe.StateOK,
		Temperature: source.ParseNumber(first[3]), Power: source.ParseNumber(first[4]),
	}}, true
}
