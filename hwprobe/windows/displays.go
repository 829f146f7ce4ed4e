package windows

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// keyDisplays has a key for each display driver that was ever set up, keyPCI one for each PCI device that was ever there.
// Adapters that programs made up are below Enum\ROOT and never met here.
const (
	classDisplay = `{4d36e968-e325-11ce-bfc1-08002be10318}`
	keyDisplays  = `SYSTEM\CurrentControlSet\Control\Class\` + classDisplay
	keyPCI       = `SYSTEM\CurrentControlSet\Enum\PCI`
)

// display is what the registry says of a display driver and of the device that it is for.
type display struct {
	ids           deviceIDs
	pci           string
	name, version string
	memory        hwprobe.Bytes // of the chips
}

// deviceIDs are what a PCI device calls itself; 0 where not told.
type deviceIDs struct{ vendor, device, subsys uint32 }

// readDisplays lists the drivers; none where the registry does not answer. HardwareInformation.MemorySize, which has 32
// bits, and WMI's AdapterRAM, which is the same, are not asked for: they say 2 or 4 GB for every larger card.
func readDisplays(ctx context.Context, calls source.Caller) []display {
	drivers, err := askRegistry(ctx, calls, keyDisplays, 1, "DriverDesc", "DriverVersion", "MatchingDeviceId", "HardwareInformation.qwMemorySize")
	if err != nil {
		return nil // DXGI's numbers stand alone
	}
	devices, err := askRegistry(ctx, calls, keyPCI, 2, "ClassGUID", "Driver", "LocationInformation")
	if err != nil {
		devices = nil // a driver is then paired by its ids
	}
	byDriver := map[string]RegistryKey{}
	for _, d := range devices {
		if driver := strings.ToLower(d.text("Driver")); strings.HasPrefix(driver, classDisplay+`\`) {
			byDriver[strings.TrimPrefix(driver, classDisplay+`\`)] = d
		}
	}
	var displays []display
	for _, k := range drivers {
		s := display{ids: parseIDs(k.text("MatchingDeviceId")), name: k.text("DriverDesc"), version: k.text("DriverVersion")}
		if size := k.number("HardwareInformation.qwMemorySize"); size.Or(0) > 0 {
			s.memory = size
		}
		if device, found := byDriver[strings.ToLower(k.Name)]; found {
			s.ids, s.pci = parseIDs(device.Name), parseLocation(device.text("LocationInformation"))
		}
		displays = append(displays, s)
	}
	return displays
}

// pair gives each adapter the display that is its own for certain: the one with its ids at its address, else, where an
// address is missing, the only one with its ids while no other adapter has them. Never by name or order.
func pair(adapters []adapter, displays []display) {
	for i := range adapters {
		a := &adapters[i]
		found := alike(displays, *a, func(s display) bool { return a.pci != "" && s.pci == a.pci })
		if len(found) == 0 && isAlone(*a, adapters) {
			found = alike(displays, *a, func(s display) bool { return a.pci == "" || s.pci == "" })
		}
		if len(found) != 1 {
			continue
		}
		a.display = found[0]
		if a.pci == "" {
			a.pci = a.display.pci
		}
	}
}

func alike(displays []display, a adapter, placed func(display) bool) []display {
	var found []display
	for _, s := range displays {
		if s.ids.matches(a.ids()) && placed(s) {
			found = append(found, s)
		}
	}
	return found
}

// isAlone says that no other adapter could have the same ids.
func isAlone(a adapter, adapters []adapter) bool {
	same := 0
	for _, other := range adapters {
		if other.ids().matches(a.ids()) {
			same++
		}
	}
	return same == 1
}

func (a adapter) ids() deviceIDs { return deviceIDs{a.VendorID, a.DeviceID, a.SubSysID} }

// matches says that both can be the same device: vendor and device are told and equal, and the subsystem where both tell it.
func (d deviceIDs) matches(other deviceIDs) bool {
	return d.vendor != 0 && d.device != 0 && d.vendor == other.vendor && d.device == other.device &&
		(d.subsys == 0 || other.subsys == 0 || d.subsys == other.subsys)
}

var (
	idPattern       = regexp.MustCompile(`(?i)\bVEN_([0-9a-f]{4})&DEV_([0-9a-f]{4})(?:&SUBSYS_([0-9a-f]{8}))?`)
	locationPattern = regexp.MustCompile(`\((\d{1,9}),(\d{1,9}),(\d{1,9})\)$`)
)

// parseIDs reads a device's name, such as `PCI\VEN_8086&DEV_9BC4&SUBSYS_170D1043&REV_05`.
func parseIDs(name string) deviceIDs {
	parts := idPattern.FindStringSubmatch(name)
	if parts == nil {
		return deviceIDs{}
	}
	number := func(text string) uint32 {
		n, err := strconv.ParseUint(text, 16, 32)
		if err != nil {
			return 0 // the subsystem is not told
		}
		return uint32(n)
	}
	return deviceIDs{number(parts[1]), number(parts[2]), number(parts[3])}
}

// parseLocation reads the PCI address of a LocationInformation, whose words Windows translates only when it shows them:
// "@System32\drivers\pci.sys,#65536;PCI bus %1, device %2, function %3;(1,0,0)". Empty when it has none.
func parseLocation(text string) string {
	parts := locationPattern.FindStringSubmatch(strings.TrimSpace(text))
	if parts == nil {
		return ""
	}
	var number [3]uint32
	for i, digits := range parts[1:] {
		n, err := strconv.ParseUint(digits, 10, 32)
		if err != nil {
			return ""
		}
		number[i] = uint32(n)
	}
	return BusAddress{number[0], number[1], number[2]}.pci()
}
