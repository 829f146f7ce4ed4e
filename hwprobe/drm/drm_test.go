package drm

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
)

func only(t *testing.T, root fs.FS, vendor string) Card {
	t.Helper()
	cards := Cards(root, vendor)
	if len(cards) != 1 {
		t.Fatalf("%d cards %+v, want one", len(cards), cards)
	}
	return cards[0]
}

func TestCardTellsWhatTheKernelTells(t *testing.T) {
	root := fixture.Tree(t, "intel-sysfs-arc-b580-xe.txtar", "sys/class/drm/card1/device/drm/card1/dev", "226:1\n", "sys/class/drm/card1/device/drm/renderD129/dev", "226:129\n")
	want := Card{Name: "card1", Dir: "sys/class/drm/card1/device", PCI: "0000:09:00.0", Vendor: "0x8086", ID: "8086:e20b", Revision: "0x00",
		Subsystem: "8086:1100", Class: "030000", Driver: "xe", RenderNode: "renderD129", BootVGA: hwprobe.Known(false)}
	if got := only(t, root, "0x8086"); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if others := Cards(root, "0x1002"); len(others) != 0 {
		t.Errorf("cards of another vendor: %+v", others)
	}
}

// Strix Point's graphics are no VGA controller, and the Steam Deck's recording has neither boot_vga nor class.
func TestDisplayControllerWithoutVGAIsACard(t *testing.T) {
	if c := only(t, fixture.Tree(t, "amd-sysfs-strixpoint-890m-apu.txtar"), "0x1002"); c.Class != "038000" || c.PCI != "0000:c1:00.0" {
		t.Errorf("%+v", c)
	}
	c := only(t, fixture.Tree(t, "amd-sysfs-vangogh-steamdeck-apu.txtar"), "0x1002")
	if c.BootVGA != (hwprobe.Flag{}) || c.RenderNode != "" || c.Revision != "" || c.ID != "1002:163f" {
		t.Errorf("what the kernel does not tell is not unknown: %+v", c)
	}
}

func TestConnectorsAndPartitionsAreNoCards(t *testing.T) {
	root := fixture.Tree(t, "amd-sysfs-rx6900xt-16g.txtar",
		"sys/class/drm/card0-DP-1/device/vendor", "0x1002\n", "sys/class/drm/renderD128/device/vendor", "0x1002\n",
		"sys/class/drm/card1/device/uevent", "DRIVER=amdgpu_xcp_drv\nMODALIAS=platform:amdgpu_xcp\n")
	only(t, root, "0x1002")
}

func TestCardWithoutPCIAddressIsNamedByTheKernel(t *testing.T) {
	root := fstest.MapFS{"sys/class/drm/card3/device/vendor": {Data: []byte("0x1002\n")}}
	if id := only(t, root, "0x1002").DeviceID(); id != "gpu:card3" {
		t.Errorf("id %s", id)
	}
	if c := (Card{Name: "card3", PCI: "0000:03:00.0"}); c.DeviceID() != "gpu:0000:03:00.0" {
		t.Errorf("id %s", c.DeviceID())
	}
}

// Either file alone may say it: runtime_status reads "unsupported" where the platform cuts the power.
func TestSleepingCardIsSeen(t *testing.T) {
	const device = "sys/class/drm/card0/device/"
	for file, asleep := range map[string]map[string]bool{
		"power/runtime_status": {"suspended": true, "active": false, "unsupported": false, "resuming": false},
		"power_state":          {"D3cold": true, "D3hot": false, "D0": false, "unknown": false},
	} {
		for text, want := range asleep {
			if got := only(t, fixture.Tree(t, "amd-sysfs-rx6900xt-16g.txtar", device+file, text+"\n"), "0x1002").Asleep; got != want {
				t.Errorf("%s %q: asleep %v", file, text, got)
			}
		}
	}
}

func TestNoGraphicsIsNotHiddenGraphics(t *testing.T) {
	none := fstest.MapFS{"sys/class/drm/version": {Data: []byte("drm 1.1.0 20060810\n")}}
	if !Visible(none) || len(Cards(none, "0x1002")) != 0 {
		t.Error("a machine without a card is one that hides it")
	}
	if Visible(fstest.MapFS{"proc/meminfo": {}}) {
		t.Error("without /sys the cards are not visible")
	}
}

// Sensors are told by label: temp1 of xe does not exist, its temp2 is the chip and its temp3 the memory; i915 labels none.
func TestTemperatureIsOfTheLabelledSensor(t *testing.T) {
	for _, c := range []struct {
		file, vendor, label string
		want                float64
	}{
		{"intel-sysfs-arc-a380-xe.txtar", "0x8086", "pkg", 56},
		{"intel-sysfs-arc-b580-xe.txtar", "0x8086", "pkg", 54},
		{"intel-sysfs-arc-a380-i915.txtar", "0x8086", "pkg", 55},
		{"amd-sysfs-rx6900xt-16g.txtar", "0x1002", "edge", 56},
		{"amd-sysfs-rx6900xt-16g.txtar", "0x1002", "junction", 59},
	} {
		root := fixture.Tree(t, c.file)
		if got := only(t, root, c.vendor).Temperature(root, c.label); got != hwprobe.Known(c.want) {
			t.Errorf("%s: %s %v, want %v", c.file, c.label, got, c.want)
		}
	}
	root := fixture.Tree(t, "amd-sysfs-rx6900xt-16g.txtar")
	if got := only(t, root, "0x1002").Temperature(root, "pkg"); got != (hwprobe.Number{}) {
		t.Errorf("a sensor of another label was taken: %v", got)
	}
}

func TestPowerIsTheAverageWhereThereIsOne(t *testing.T) {
	root := fixture.Tree(t, "amd-sysfs-phoenix-780m-apu.txtar") // has power1_average 3103000 and power1_input 3142000, in µW
	if got := only(t, root, "0x1002").Power(root); got != hwprobe.Known(3.103) {
		t.Errorf("power %v", got)
	}
	delete(root, "sys/class/drm/card1/device/hwmon/hwmon6/power1_average")
	if got := only(t, root, "0x1002").Power(root); got != hwprobe.Known(3.142) {
		t.Errorf("power %v of a card that tells only this moment's", got)
	}
	energy := fixture.Tree(t, "intel-sysfs-arc-b580-xe.txtar") // counts energy, which one reading does not make power
	if got := only(t, energy, "0x8086").Power(energy); got != (hwprobe.Number{}) {
		t.Errorf("power %v", got)
	}
}

// The numbers are those that other programs got from the C headers on amd64.
func TestRequestNumbers(t *testing.T) {
	for _, c := range []struct {
		what      string
		got, want uintptr
	}{
		{"DRM_IOCTL_VERSION", Request(ReadWrite, 0, 64), 0xc0406400},
		{"DRM_IOCTL_AMDGPU_INFO", Request(Write, CommandBase+5, 32), 0x40206445},
		{"DRM_IOCTL_XE_DEVICE_QUERY", Request(ReadWrite, CommandBase, 40), 3223872576},
		{"DRM_IOCTL_I915_QUERY", Request(ReadWrite, CommandBase+0x39, 16), 3222299769},
	} {
		if c.got != c.want {
			t.Errorf("%s is %#x, want %#x", c.what, c.got, c.want)
		}
	}
}
