package amd

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
)

func seed(f *testing.F, pattern string) {
	f.Helper()
	files, err := filepath.Glob(filepath.Join("..", "testdata", pattern))
	if err != nil || len(files) == 0 {
		f.Fatal(pattern, err)
	}
	for _, file := range files {
		f.Add([]byte(fixture.Text(f, filepath.Base(file))))
	}
}

// inText fails for a size that the text does not hold, digit by digit.
func inText(t *testing.T, text string, sizes ...hwprobe.Bytes) {
	t.Helper()
	for _, size := range sizes {
		if n, known := size.Value(); known && !strings.Contains(text, fmt.Sprint(n)) {
			t.Errorf("%d is not in the input", n)
		}
	}
}

func FuzzROCmSMI(f *testing.F) {
	seed(f, "amd-rocmsmi-*")
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, u := range rocmUnits(parseROCmSMI(text)) {
			if !strings.Contains(string(text), `\u`) { // JSON can spell a digit otherwise
				inText(t, string(text), u.memory.vramTotal, u.memory.vramUsed, u.memory.gttTotal, u.memory.gttUsed)
			}
			if u.device.ID == "" || u.device.Name == "" || u.memory.vramTotal == hwprobe.Known[uint64](0) || u.device.Utilisation.Or(0) < 0 || u.device.Utilisation.Or(0) > 100 {
				t.Errorf("%+v", u)
			}
		}
	})
}

func FuzzAMDSMI(f *testing.F) {
	seed(f, "amd-smi-*")
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, u := range amdSMIUnits(text) {
			address, ok := hwprobe.PCIAddress(u.device.PCI)
			if !ok || address != u.device.PCI || u.memory != (memory{}) {
				t.Errorf("%+v", u)
			}
		}
	})
}

func FuzzKFDProperties(f *testing.F) {
	for _, file := range []string{"amd-sysfs-phoenix-780m-apu.txtar", "amd-sysfs-vangogh-steamdeck-apu.txtar", "amd-sysfs-strixpoint-890m-apu.txtar"} {
		for name, data := range fixture.Tree(f, file) {
			if strings.HasPrefix(name, "sys/class/kfd") && strings.HasSuffix(name, "/properties") {
				f.Add(string(data.Data))
			}
		}
	}
	f.Fuzz(func(t *testing.T, properties string) {
		node, graphics := parseKFD(properties)
		if !graphics && node != (kfdNode{}) {
			t.Errorf("a processor's node is %+v", node)
		}
		if address, ok := hwprobe.PCIAddress(node.pci); graphics && (!ok || address != node.pci) {
			t.Errorf("address %q", node.pci)
		}
		if node.target != "" && !strings.HasPrefix(node.target, "gfx") {
			t.Errorf("target %q", node.target)
		}
	})
}

// deviceInfo is a reply of the driver, laid out as the header says: eight words, two clocks, two words and sixteen of the
// units' bitmap, three words and a padding, and then ids_flags.
func deviceInfo(device uint32, flags uint64) []byte {
	var reply []byte
	word := func(n uint32) { reply = binary.NativeEndian.AppendUint32(reply, n) }
	long := func(n uint64) { reply = binary.NativeEndian.AppendUint64(reply, n) }
	for _, n := range []uint32{device, 0, 1, 0xdd, 148, 1, 2, 100000} { // device_id to gpu_counter_freq
		word(n)
	}
	long(2700000) // max_engine_clock
	long(800000)  // max_memory_clock
	word(12)      // cu_active_number
	word(0)       // cu_ao_mask
	for range 16 {
		word(0xffffffff) // cu_bitmap
	}
	for _, n := range []uint32{0xf, 4, 8, 4} { // enabled_rb_pipes_mask, num_rb_pipes, num_hw_gfx_contexts, pcie_gen
		word(n)
	}
	long(flags)
	return reply
}

func TestDeviceInfoIsDecodedAsTheHeaderLaysItOut(t *testing.T) {
	reply := deviceInfo(0x15bf, 0x13)
	if len(reply) != infoSize {
		t.Fatalf("%d bytes, want %d", len(reply), infoSize)
	}
	if info, err := decodeDeviceInfo(reply); err != nil || info != (DeviceInfo{DeviceID: 0x15bf, IDsFlags: 0x13}) {
		t.Errorf("%+v, %v", info, err)
	}
	if info, err := decodeDeviceInfo(reply[:infoSize-1]); err == nil || info != (DeviceInfo{}) {
		t.Errorf("a short reply is %+v", info)
	}
}

func FuzzDeviceInfo(f *testing.F) {
	f.Add(deviceInfo(0x15bf, 0x13))
	f.Add(deviceInfo(0x744c, 0x12)[:20])
	f.Fuzz(func(t *testing.T, reply []byte) {
		info, err := decodeDeviceInfo(reply)
		if err == nil && len(reply) < infoSize || err != nil && info != (DeviceInfo{}) {
			t.Errorf("%d bytes: %+v, %v", len(reply), info, err)
		}
	})
}
