// Package drm lists the graphics cards that the Linux kernel's DRM subsystem shows below /sys/class/drm, whoever made them,
// and asks their drivers questions on the cards' render nodes.
package drm

import (
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// Card is a graphics card as the kernel's DRM subsystem shows it. A text is empty, and BootVGA unknown, where the kernel
// does not tell.
type Card struct {
	Name       string       // the kernel's own name for it, such as "card1"; it may be another one after a reboot
	Dir        string       // its device directory below the root
	PCI        string       // normalised, see hwprobe.PCIAddress
	Vendor     string       // "0x1002"
	ID         string       // PCI vendor and device, "1002:73bf"
	Revision   string       // "0xc0": products of one id may differ by it
	Subsystem  string       // who built the card, and which: "1da2:440e"
	Class      string       // PCI class, six hexadecimal digits: "030000" VGA, "038000" a display controller without VGA
	Driver     string       // kernel driver
	RenderNode string       // base name of its device file for programs that only compute, "renderD128"
	BootVGA    hwprobe.Flag // the firmware's screen is on it
	Asleep     bool         // powered down to save energy; some of its files wake it when read, and its render node when opened
}

// classDir is where the kernel shows all cards, their connectors and their render nodes.
const classDir = "sys/class/drm"

// cardName excludes connectors such as card0-DP-1.
var cardName = regexp.MustCompile(`^card[0-9]+$`)

var renderName = regexp.MustCompile(`^renderD[0-9]+$`)

// Cards lists the graphics cards of one PCI vendor, in no meaningful order: pair by address, never by position. Partitions
// of a card, which the kernel shows as cards without a PCI device, are not among them.
func Cards(root fs.FS, vendor string) []Card {
	entries, err := fs.ReadDir(root, classDir)
	if err != nil {
		return nil // no graphics driver at all, or not Linux
	}
	var cards []Card
	for _, entry := range entries {
		dir := path.Join(classDir, entry.Name(), "device")
		if cardName.MatchString(entry.Name()) && source.ReadText(root, path.Join(dir, "vendor")) == vendor {
			cards = append(cards, readCard(root, entry.Name(), dir, vendor))
		}
	}
	return cards
}

// Visible says whether this root shows the kernel's graphics cards at all, if it has none: a container may hide them.
func Visible(root fs.FS) bool {
	_, err := fs.ReadDir(root, classDir)
	return err == nil
}

func readCard(root fs.FS, name, dir, vendor string) Card {
	c := Card{Name: name, Dir: dir, Vendor: vendor, Revision: source.ReadText(root, path.Join(dir, "revision"))}
	for line := range strings.Lines(source.ReadText(root, path.Join(dir, "uevent"))) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "DRIVER":
			c.Driver = value
		case "PCI_CLASS":
			c.Class = strings.Repeat("0", max(0, 6-len(value))) + strings.ToLower(value)
		case "PCI_ID":
			c.ID = strings.ToLower(value)
		case "PCI_SUBSYS_ID":
			c.Subsystem = strings.ToLower(value)
		case "PCI_SLOT_NAME":
			c.PCI, _ = hwprobe.PCIAddress(value)
		}
	}
	switch source.ReadText(root, path.Join(dir, "boot_vga")) {
	case "1":
		c.BootVGA = hwprobe.Known(true)
	case "0":
		c.BootVGA = hwprobe.Known(false)
	}
	c.RenderNode = renderNode(root, dir)
	// A card whose power is cut by the platform may say so in only one of the two.
	c.Asleep = source.ReadText(root, path.Join(dir, "power/runtime_status")) == "suspended" ||
		source.ReadText(root, path.Join(dir, "power_state")) == "D3cold"
	return c
}

func renderNode(root fs.FS, dir string) string {
	nodes, _ := fs.ReadDir(root, path.Join(dir, "drm"))
	for _, node := range nodes {
		if renderName.MatchString(node.Name()) {
			return node.Name()
		}
	}
	return ""
}

// DeviceID is the id by PCI address; a card without one is named by the kernel's own name for it.
func (c Card) DeviceID() string {
	if c.PCI != "" {
		return "gpu:" + c.PCI
	}
	return "gpu:" + c.Name
}

// Sensors returns the directories of the card's hardware monitors, each a folder of files such as temp1_input.
func (c Card) Sensors(root fs.FS) []string {
	dir := path.Join(c.Dir, "hwmon")
	entries, _ := fs.ReadDir(root, dir)
	var monitors []string
	for _, entry := range entries {
		monitors = append(monitors, path.Join(dir, entry.Name()))
	}
	return monitors
}

// Temperature is degrees Celsius of the sensor that bears one of the labels, the first that is there; a driver that labels
// nothing has one sensor, the card's.
func (c Card) Temperature(root fs.FS, labels ...string) hwprobe.Number {
	monitors := c.Sensors(root)
	for _, label := range labels {
		for _, monitor := range monitors {
			files, _ := fs.Glob(root, path.Join(monitor, "temp*_label"))
			for _, file := range files {
				if source.ReadText(root, file) == label {
					return source.ReadScaled(root, strings.TrimSuffix(file, "_label")+"_input", 1e3)
				}
			}
		}
	}
	for _, monitor := range monitors {
		if _, err := fs.Stat(root, path.Join(monitor, "temp1_label")); err != nil {
			if t := source.ReadScaled(root, path.Join(monitor, "temp1_input"), 1e3); t != (hwprobe.Number{}) {
				return t
			}
		}
	}
	return hwprobe.Number{}
}

// Power is watts: averaged where the driver averages, else of this moment. APUs and newer cards have power1_input where
// others have power1_average, some have both.
func (c Card) Power(root fs.FS) hwprobe.Number {
	for _, name := range []string{"power1_average", "power1_input"} {
		for _, monitor := range c.Sensors(root) {
			if p := source.ReadScaled(root, path.Join(monitor, name), 1e6); p != (hwprobe.Number{}) {
				return p
			}
		}
	}
	return hwprobe.Number{}
}
