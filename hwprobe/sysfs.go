package hwprobe

import (
	"fmt"
	"io/fs"
	"math"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// readText returns a file's text without white space around it; empty when it cannot be read.
func readText(root fs.FS, name string) string {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func readUint(root fs.FS, name string) Bytes { return parseUint(readText(root, name)) }

// readScaled reads a whole number and divides it, such as millidegrees by 1000.
func readScaled(root fs.FS, name string, divisor float64) Number {
	n, err := strconv.ParseInt(readText(root, name), 10, 64)
	if err != nil {
		return Number{}
	}
	return Known(float64(n) / divisor)
}

func parseUint(text string) Bytes {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return Bytes{}
	}
	return Known(n)
}

func parseNumber(text string) Number {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return Number{}
	}
	return Known(n)
}

// fieldOf returns the value of a "key value" line, as the kernel's properties files have them.
func fieldOf(text, key string) string {
	for line := range strings.Lines(text) {
		if k, v, found := strings.Cut(strings.TrimSpace(line), " "); found && k == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// card is a graphics card as the kernel's DRM subsystem shows it.
type card struct {
	dir    string // its device directory below the root
	pci    string // normalised; empty when the kernel does not tell
	vendor string // "0x1002"
	id     string // PCI vendor and device, "1002:73bf"
	driver string // kernel driver
	asleep bool   // powered down to save energy; some of its files wake it when read
}

// cardName excludes connectors such as card0-DP-1.
var cardName = regexp.MustCompile(`^card[0-9]+$`)

// drmCards lists the graphics cards of one PCI vendor, in no meaningful order: pair by address, never by position.
func drmCards(root fs.FS, vendor string) []card {
	const class = "sys/class/drm"
	entries, err := fs.ReadDir(root, class)
	if err != nil {
		return nil // no graphics driver at all, or not Linux
	}
	var cards []card
	for _, entry := range entries {
		dir := path.Join(class, entry.Name(), "device")
		if !cardName.MatchString(entry.Name()) || readText(root, path.Join(dir, "vendor")) != vendor {
			continue
		}
		c := card{dir: dir, vendor: vendor, asleep: readText(root, path.Join(dir, "power/runtime_status")) == "suspended"}
		for line := range strings.Lines(readText(root, path.Join(dir, "uevent"))) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			switch key {
			case "DRIVER":
				c.driver = value
			case "PCI_ID":
				c.id = strings.ToLower(value)
			case "PCI_SLOT_NAME":
				c.pci, _ = PCIAddress(value)
			}
		}
		cards = append(cards, c)
	}
	return cards
}

// deviceID is the id by PCI address; a card without one is named by the kernel's own name for it.
func (c card) deviceID() string {
	if c.pci != "" {
		return "gpu:" + c.pci
	}
	return "gpu:" + path.Base(path.Dir(c.dir))
}

var pciPattern = regexp.MustCompile(`^([0-9a-fA-F]{1,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\.([0-7])$`)

// PCIAddress normalises a PCI address to the kernel's form: lower case, a domain of at least four digits, such as
// "0000:0c:00.0" for "00000000:0C:00.0". ok is false when the text is no PCI address.
func PCIAddress(text string) (address string, ok bool) {
	parts := pciPattern.FindStringSubmatch(strings.TrimSpace(text))
	if parts == nil {
		return "", false
	}
	domain, err := strconv.ParseUint(parts[1], 16, 32)
	if err != nil {
		return "", false
	}
	return fmt.Sprintf("%04x:%s:%s.%s", domain, strings.ToLower(parts[2]), strings.ToLower(parts[3]), parts[4]), true
}
