// Package drm lists the graphics cards that the Linux kernel's DRM subsystem shows below /sys/class/drm, whoever made them.
package drm

import (
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// Card is a graphics card as the kernel's DRM subsystem shows it.
type Card struct {
	Dir    string // its device directory below the root
	PCI    string // normalised; empty when the kernel does not tell
	Vendor string // "0x1002"
	ID     string // PCI vendor and device, "1002:73bf"
	Driver string // kernel driver
	Asleep bool   // powered down to save energy; some of its files wake it when read
}

// cardName excludes connectors such as card0-DP-1.
var cardName = regexp.MustCompile(`^card[0-9]+$`)

// Cards lists the graphics cards of one PCI vendor, in no meaningful order: pair by address, never by position.
func Cards(root fs.FS, vendor string) []Card {
	const class = "sys/class/drm"
	entries, err := fs.ReadDir(root, class)
	if err != nil {
		return nil // no graphics driver at all, or not Linux
	}
	var cards []Card
	for _, entry := range entries {
		dir := path.Join(class, entry.Name(), "device")
		if !cardName.MatchString(entry.Name()) || source.ReadText(root, path.Join(dir, "vendor")) != vendor {
			continue
		}
		c := Card{Dir: dir, Vendor: vendor, Asleep: source.ReadText(root, path.Join(dir, "power/runtime_status")) == "suspended"}
		for line := range strings.Lines(source.ReadText(root, path.Join(dir, "uevent"))) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			switch key {
			case "DRIVER":
				c.Driver = value
			case "PCI_ID":
				c.ID = strings.ToLower(value)
			case "PCI_SLOT_NAME":
				c.PCI, _ = hwprobe.PCIAddress(value)
			}
		}
		cards = append(cards, c)
	}
	return cards
}

// DeviceID is the id by PCI address; a card without one is named by the kernel's own name for it.
func (c Card) DeviceID() string {
	if c.PCI != "" {
		return "gpu:" + c.PCI
	}
	return "gpu:" + path.Base(path.Dir(c.Dir))
}
