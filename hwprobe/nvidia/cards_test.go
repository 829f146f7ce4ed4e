package nvidia

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
)

func TestASleepingCardIsNotWoken(t *testing.T) {
	for name, tree := range map[string]fstest.MapFS{
		"runtime status":    onPCI("0000:01:00.0", "nvidia", "suspended"),
		"power state alone": joined(onPCI("0000:01:00.0", "nvidia", "unsupported"), fixture.Write(fstest.MapFS{}, "sys/bus/pci/devices/0000:01:00.0/power_state", "D3cold\n")),
	} {
		var asked [][]string
		f := find(t, pc(smi{csv: fixture.Text(t, "nvidia-smi-rtx4080s-linux-595.query-idle.csv"), asked: &asked}, tree))
		if len(asked) != 0 || len(f.Devices) != 1 || f.Devices[0].State != hwprobe.StateAsleep || f.Devices[0].ID != "gpu:0000:01:00.0" {
			t.Errorf("%s: asked %v, %+v", name, asked, f)
		}
		checkPools(t, f, "gpu:0000:01:00.0 ? ?")
	}
}

func TestOnlyTheCardThatIsAwakeIsAsked(t *testing.T) {
	var asked [][]string
	m := smi{asked: &asked, only: map[string]string{"0000:01:00.0": fixture.Text(t, "nvidia-smi-rtx4080s-linux-595.query-idle.csv")}}
	f := find(t, pc(m, joined(onPCI("0000:01:00.0", "nvidia", "active"), onPCI("0000:05:00.0", "nvidia", "suspended"))))
	for _, question := range asked {
		if question[0] != "-i" || question[1] != "0000:01:00.0" {
			t.Errorf("asked %v", question)
		}
	}
	states := map[string]hwprobe.State{}
	for _, d := range f.Devices {
		states[d.PCI] = d.State
	}
	if len(asked) != 1 || states["0000:01:00.0"] != hwprobe.StateOK || states["0000:05:00.0"] != hwprobe.StateAsleep {
		t.Errorf("asked %v, %+v", asked, f)
	}
}

func TestACardWithoutADriverIsNotAsleep(t *testing.T) { // the kernel powers it down, but using it needs the driver
	f := find(t, pc(smi{csv: fixture.Text(t, "nvidia-err-no-comm.txt"), code: 9}, onPCI("0000:01:00.0", "", "suspended")))
	if f.Devices[0].State != hwprobe.StateDegraded || !slices.Equal(warned(f), []hwprobe.WarningCode{hwprobe.WarnDriverNotLoaded}) {
		t.Errorf("%+v", f)
	}
}

func TestACardOfAVirtualMachineIsNotUsable(t *testing.T) {
	var asked [][]string
	f := find(t, pc(smi{asked: &asked}, onPCI("0000:01:00.0", "vfio-pci", "suspended")))
	if len(asked) != 0 || f.Devices[0].State != hwprobe.StateUnsupported || !strings.Contains(f.Warnings[0].Message, "vfio-pci") {
		t.Errorf("asked %v, %+v", asked, f)
	}
}

func TestOnlyGraphicsDevicesOfNVIDIAAreCards(t *testing.T) {
	device := func(address, class, id string) fstest.MapFS {
		return fixture.Write(fstest.MapFS{}, "sys/bus/pci/devices/"+address+"/uevent", "DRIVER=x\nPCI_CLASS="+class+"\nPCI_ID="+id+"\nPCI_SLOT_NAME="+address+"\n")
	}
	found := cards(joined(
		device("0000:01:00.0", "30000", "10DE:2684"), device("0000:01:00.1", "40300", "10DE:22BA"), // its sound
		device("0000:02:00.0", "30200", "10DE:2330"), device("0000:03:00.0", "68000", "10DE:22A3"), // NVSwitch
		device("0004:00:00.0", "60400", "10DE:229C"), device("0000:c5:00.0", "30000", "1002:1586"),
		fixture.Write(fstest.MapFS{}, "sys/bus/pci/devices/0000:06:00.0/uevent", "PCI_CLASS=x\n"),
		device("0000:02:00.4", "30200", "10DE:2330"), fixture.Write(fstest.MapFS{}, "sys/bus/pci/devices/0000:02:00.4/physfn/uevent", ""), // vGPU's virtual function
	))
	var addresses []string
	for _, c := range found {
		addresses = append(addresses, c.pci)
	}
	slices.Sort(addresses)
	if !slices.Equal(addresses, []string{"0000:01:00.0", "0000:02:00.0"}) {
		t.Errorf("%v", addresses)
	}
}

// The bus of a large server is read at each poll.
func BenchmarkCardsOfAServer(b *testing.B) {
	root := b.TempDir()
	for i := range 200 {
		address := fmt.Sprintf("0000:%02x:00.0", i)
		dir := filepath.Join(root, "sys/bus/pci/devices", address)
		uevent := fmt.Sprintf("DRIVER=x\nPCI_CLASS=%s\nPCI_ID=10DE:2330\nPCI_SLOT_NAME=%s\n", map[bool]string{true: "30200", false: "60400"}[i < 8], address)
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "uevent"), []byte(uevent), 0o600)); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if n := len(cards(os.DirFS(root))); n != 8 {
			b.Fatal(n)
		}
	}
}
