package nvidia

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/drm"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// card is a card as the kernel shows it, whether a driver works on it or not. A text is empty where it is not told.
type card struct {
	id     string // of the device
	pci    string // normalised
	model  string // PCI vendor and device, "10de:2704"
	driver string // kernel driver
	asleep bool   // powered down to save energy
}

// cards lists NVIDIA's cards. The PCI bus has all of them, also on a server without graphics; WSL shows none.
func cards(root fs.FS) []card {
	var found []card
	const bus = "sys/bus/pci/devices"
	entries, _ := fs.ReadDir(root, bus) // not Linux, or no PCI bus: none
	for _, entry := range entries {
		if c, ok := onBus(root, path.Join(bus, entry.Name())); ok {
			found = append(found, c)
		}
	}
	for _, d := range drm.Cards(root, "0x10de") {
		if !slices.ContainsFunc(found, func(c card) bool { return c.pci != "" && c.pci == d.PCI }) {
			found = append(found, card{id: d.DeviceID(), pci: d.PCI, model: d.ID, driver: d.Driver, asleep: d.Asleep})
		}
	}
	return found
}

// onBus reads one device of the PCI bus; ok is false when it is none of NVIDIA's graphics devices. None of the files wakes
// it; /proc/driver/nvidia/gpus/*/information, which has the model's name, does.
func onBus(root fs.FS, dir string) (c card, ok bool) {
	class := uint64(0)
	for line := range strings.Lines(source.ReadText(root, path.Join(dir, "uevent"))) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "DRIVER":
			c.driver = value
		case "PCI_CLASS":
			class, _ = strconv.ParseUint(value, 16, 32) // not told: no graphics device
		case "PCI_ID":
			c.model = strings.ToLower(value)
		case "PCI_SLOT_NAME":
			c.pci, _ = hwprobe.PCIAddress(value)
		}
	}
	const display = 0x03 // the base class; a card's sound, USB and bridge functions have others
	if class>>16 != display || !strings.HasPrefix(c.model, "10de:") || c.pci == "" {
		return card{}, false
	}
	if _, err := fs.Stat(root, path.Join(dir, "physfn")); err == nil {
		return card{}, false // a slice of a card that its host gives to a virtual machine
	}
	c.id = "gpu:" + c.pci
	// A card whose power is cut by the platform may say so in only one of the two. One without a driver does not sleep: it
	// was never started.
	state := source.ReadText(root, path.Join(dir, "power_state"))
	c.asleep = c.driver != "" && (source.ReadText(root, path.Join(dir, "power/runtime_status")) == "suspended" || state == "D3hot" || state == "D3cold")
	return c, true
}

// givenAway are the drivers that hold a card for a virtual machine.
var givenAway = []string{"vfio-pci", "pci-stub", "xen-pciback"}

// addIdle adds the cards that nvidia-smi is not to be asked about, and returns the others. Asking about a sleeping card
// would wake it and keep it from sleeping for seconds (optimus-manager#313).
func (f *finder) addIdle(all []card) (awake []card) {
	for _, c := range all {
		switch {
		case slices.Contains(givenAway, c.driver):
			f.addUnread(c, hwprobe.StateUnsupported, hwprobe.WarnUnsupportedGPU, "it is kept for virtual machines by "+c.driver,
				"nothing is wrong if a virtual machine uses it; else bind it to NVIDIA's driver")
		case c.asleep:
			f.addUnread(c, hwprobe.StateAsleep, hwprobe.WarnMemoryUnknown, "it sleeps, and reading its memory would wake it",
				"nothing is wrong: its memory is read when something else wakes it; to read it now, run nvidia-smi just before a probe")
		default:
			awake = append(awake, c)
		}
	}
	return awake
}

// addUnread adds a card that nvidia-smi tells nothing about.
func (f *finder) addUnread(c card, state hwprobe.State, code hwprobe.WarningCode, why, next string) {
	d := hwprobe.Device{ID: c.id, Vendor: hwprobe.NVIDIA, Name: "NVIDIA GPU", PCI: c.pci, Driver: c.driver, State: state, Pool: c.id}
	if c.model != "" {
		d.Name += " (" + c.model + ")"
	}
	d.Integrated = unified(row{}, f.machine.Arch)
	f.add(d, hwprobe.Pool{ID: d.ID, Kind: hwprobe.PoolOfDevice})
	f.found.Warn(code, d.ID, d.Name+": "+why, next)
}
