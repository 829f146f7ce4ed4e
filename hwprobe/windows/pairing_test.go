package windows

import (
	"slices"
	"testing"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

const radeon = "VEN_1002&DEV_744C&SUBSYS_0E0D1002&REV_C8"

func radeons(luids ...uint64) []Adapter {
	var list []Adapter
	for _, luid := range luids {
		list = append(list, Adapter{Description: "AMD Radeon RX 7900 XT", VendorID: 0x1002, DeviceID: 0x744c, SubSysID: 0x0e0d1002, DedicatedVideo: gib(19), LUID: luid})
	}
	return list
}

// mesh-llm#1836 and the name on a 24 GB card that said 7900 XT: cards of one name differ in memory, and orders differ by source.
func TestEqualCardsArePairedByAddress(t *testing.T) {
	firstKey, firstDevice := driver("0003", radeon, "12,0,0", number(20<<30))
	secondKey, secondDevice := driver("0001", radeon, "3,0,0", number(24<<30))
	f := pc{dxgi: radeons(7, 8), kernel: []KernelAdapter{at(8, 3), at(7, 12)},
		registry: map[string][]RegistryKey{keyDisplays: {secondKey, firstKey}, keyPCI: {firstDevice, secondDevice}}}.probe(t)
	for pci, want := range map[string]hwprobe.Bytes{"0000:0c:00.0": gib(20), "0000:03:00.0": gib(24)} {
		if _, p := on(t, f, pci); p.TotalBytes != want {
			t.Errorf("%s has %v, want %v", pci, p.TotalBytes, want)
		}
	}
}

func TestEqualCardsWithoutAddressesAreNotPaired(t *testing.T) {
	firstKey, firstDevice := driver("0000", radeon, "3,0,0", number(20<<30))
	secondKey, secondDevice := driver("0001", radeon, "12,0,0", number(24<<30))
	f := pc{dxgi: radeons(7, 8), registry: map[string][]RegistryKey{keyDisplays: {firstKey, secondKey}, keyPCI: {firstDevice, secondDevice}}}.probe(t)
	if len(f.Devices) != 2 {
		t.Fatal(f.Devices)
	}
	for i, d := range f.Devices {
		if d.PCI != "" || f.Pools[i].TotalBytes != gib(19) || f.Pools[i].TotalSource != hwprobe.SourceDXGI {
			t.Errorf("%+v on %+v, want DXGI's own number", d, f.Pools[i])
		}
	}
}

func TestTheOnlyCardWithItsIDsNeedsNoAddress(t *testing.T) {
	key, device := driver("0000", radeon, "3,0,0", number(20<<30))
	other, otherDevice := driver("0001", "VEN_8086&DEV_4680", "0,2,0", number(1<<30))
	for name, devices := range map[string][]RegistryKey{"from the device": {device, otherDevice}, "from the driver": nil} {
		_, p := only(t, pc{dxgi: radeons(7), registry: map[string][]RegistryKey{keyDisplays: {other, key}, keyPCI: devices}}.probe(t))
		if p.TotalBytes != gib(20) || (p.ID == "gpu:0000:03:00.0") != (devices != nil) {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// Windows keeps the keys of what was ever plugged in.
func TestCardsThatWereRemovedLendNoNumbers(t *testing.T) {
	goneKey, gone := driver("0000", "VEN_1002&DEV_73BF", "3,0,0", number(16<<30)) // another card in the same slot, years ago
	movedKey, moved := driver("0001", radeon, "12,0,0", number(24<<30))           // this kind of card in another slot
	key, device := driver("0002", radeon, "3,0,0", number(20<<30))
	f := pc{dxgi: radeons(7), kernel: []KernelAdapter{at(7, 3)},
		registry: map[string][]RegistryKey{keyDisplays: {goneKey, movedKey, key}, keyPCI: {gone, moved, device}}}.probe(t)
	if d, p := only(t, f); d.Driver != "32.0.0002" || p.TotalBytes != gib(20) {
		t.Errorf("%+v on %+v", d, p)
	}
}

func TestDirectXRecordsStandInForDXGIWithoutTheStaleOnes(t *testing.T) {
	record := func(luid uint64) RegistryKey {
		return RegistryKey{Name: "{1}", Values: map[string]RegistryValue{"Description": {Text: "AMD Radeon RX 7900 XT"}, "VendorId": number(0x1002),
			"DeviceId": number(0x744c), "DedicatedVideoMemory": number(19 << 30), "AdapterLuid": number(luid)}}
	}
	f := pc{kernel: []KernelAdapter{at(8, 3)}, registry: map[string][]RegistryKey{keyDirectX: {record(7), record(8)}}}.probe(t)
	if d, p := only(t, f); d.LUID != "0x00000000_0x00000008" || p.TotalBytes != gib(19) || p.TotalSource != hwprobe.SourceRegistry {
		t.Errorf("%+v on %+v, want the one that is there", d, p)
	}
}

func TestOneChipThatIsShownTwiceIsMemoryOnce(t *testing.T) {
	if f := (pc{dxgi: radeons(7, 8), kernel: []KernelAdapter{at(7, 3), at(8, 3)}}).probe(t); len(f.Devices) != 1 || len(f.Pools) != 1 {
		t.Errorf("%+v", f.Devices)
	}
}

func TestNothingThatListsAdaptersIsAFailureAndNotAMachineWithoutAGPU(t *testing.T) {
	if f := (pc{}).probe(t); len(f.Devices) != 0 || !f.Failed() || !slices.Equal(codes(f), []hwprobe.WarningCode{hwprobe.WarnGPUsUnreadable}) {
		t.Errorf("%+v", f)
	}
	if f := (pc{dxgi: []Adapter{}}).probe(t); len(f.Devices) != 0 || len(f.Warnings) != 0 {
		t.Errorf("a machine without adapters: %+v", f)
	}
}

func TestPlacesOfAdapters(t *testing.T) {
	for text, want := range map[string]string{
		`@System32\drivers\pci.sys,#65536;PCI bus %1, device %2, function %3;(1,0,0)`:    "0000:01:00.0",
		`@System32\drivers\pci.sys,#65536;PCI-Bus %1, Gerät %2, Funktion %3;(101,0,0)`:   "0000:65:00.0",
		`@System32\drivers\pci.sys,#65536;PCI bus %1, device %2, function %3;(0,2,0)`:    "0000:00:02.0",
		`@System32\drivers\pci.sys,#65536;PCI bus %1, device %2, function %3;(3841,0,0)`: "000f:01:00.0", // the domain is above the bus
		`@System32\drivers\pci.sys,#65536;PCI bus %1, device %2, function %3;(1,32,0)`:   "",
		`@System32\drivers\pci.sys,#65536;PCI bus %1, device %2, function %3;(1,0,8)`:    "",
		`PCI bus 1, device 0, function 0`:                                                "", "(1,0)": "", "": "", "(0,0,0)": "", "(4294967295,0,0)": "", "(9999999999,0,0)": "",
	} {
		if got := parseLocation(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestIDsOfDevices(t *testing.T) {
	for text, want := range map[string]deviceIDs{
		`PCI\VEN_8086&DEV_9BC4&SUBSYS_170D1043&REV_05\3&11583659&0&10`: {0x8086, 0x9bc4, 0x170d1043},
		`pci\ven_10de&dev_2782`:                              {0x10de, 0x2782, 0},
		`VEN_1002&DEV_1586&SUBSYS_0123&REV_C1\4&1`:           {0x1002, 0x1586, 0},
		`ACPI\VEN_QCOM&DEV_0C36`:                             {},
		`ROOT\BasicRender`:                                   {},
		`USB\VID_17E9&PID_4307`:                              {},
		`PCI\VEN_10DE&DEV_1C8C&SUBSYS_1B3E1043&REV_A1\4&13…`: {0x10de, 0x1c8c, 0x1b3e1043},
	} {
		if got := parseIDs(text); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}
