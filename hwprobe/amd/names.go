package amd

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/drm"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// nameLists are where the graphics libraries keep the names by device and revision.
var nameLists = []string{"usr/share/libdrm/amdgpu.ids", "opt/amdgpu/share/libdrm/amdgpu.ids"}

// cardName is what the card calls itself, else what the graphics libraries on the machine call it. Nothing is ever
// concluded from it.
func cardName(root fs.FS, c drm.Card) string {
	if name := source.ReadText(root, path.Join(c.Dir, "product_name")); name != "" {
		return name
	}
	for _, list := range nameLists {
		if name := nameIn(source.ReadText(root, list), c); name != "" {
			return name
		}
	}
	return nameByID(c.ID)
}

// nameIn finds a name in a list of lines such as "7550,\tC0,\tAMD Radeon RX 9070 XT". Products share an id and differ by
// revision.
func nameIn(list string, c drm.Card) string {
	_, device, _ := strings.Cut(c.ID, ":")
	revision := strings.TrimPrefix(c.Revision, "0x")
	if device == "" || revision == "" {
		return ""
	}
	for line := range strings.Lines(list) {
		field := strings.SplitN(line, ",", 3)
		if len(field) == 3 && strings.EqualFold(strings.TrimSpace(field[0]), device) && strings.EqualFold(strings.TrimSpace(field[1]), revision) {
			return strings.TrimSpace(field[2])
		}
	}
	return ""
}

func nameByID(id string) string {
	if chip, listed := apus[id]; listed {
		return fmt.Sprintf("AMD Radeon (%s, %s)", chip, id)
	}
	if id == "" {
		return "AMD Radeon"
	}
	return fmt.Sprintf("AMD Radeon (%s)", id)
}

// uniqueID is a card's serial number; APUs and most consumer cards have none.
func uniqueID(root fs.FS, c drm.Card) string {
	id := source.ReadText(root, path.Join(c.Dir, "unique_id"))
	if strings.Trim(id, "0") == "" {
		return ""
	}
	return id
}

// utilisation is percent of time that the card's engine was busy; old chips do not tell.
func utilisation(root fs.FS, c drm.Card) hwprobe.Number {
	return percent(source.ReadScaled(root, path.Join(c.Dir, "gpu_busy_percent"), 1))
}

func percent(n hwprobe.Number) hwprobe.Number {
	if n.Or(-1) < 0 || n.Or(0) > 100 {
		return hwprobe.Number{}
	}
	return n
}
