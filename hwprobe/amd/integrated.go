package amd

import (
	"context"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/drm"
	"github.com/loopkeeper/loopkeeper/hwprobe/pciids"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// idMI300A is the one accelerator whose processor and graphics share all memory chips.
const idMI300A = "1002:74a0"

// apus are code names of processors with graphics by PCI id, from the public PCI id list, for people and for tools that
// print the name alone.
var apus = map[string]string{
	"1002:9874": "Carrizo", "1002:98e4": "Stoney", "1002:15dd": "Raven Ridge", "1002:15d8": "Picasso",
	"1002:1636": "Renoir", "1002:164c": "Lucienne", "1002:1638": "Cezanne", "1002:15e7": "Barcelo",
	"1002:163f": "Van Gogh", "1002:1435": "Sephiroth", "1002:1506": "Mendocino", "1002:1681": "Rembrandt",
	"1002:164d": "Rembrandt", "1002:164e": "Raphael", "1002:13c0": "Granite Ridge", "1002:15bf": "Phoenix",
	"1002:15c8": "Phoenix 2", "1002:1900": "Hawk Point", "1002:1901": "Hawk Point 2", "1002:150e": "Strix Point",
	"1002:1586": "Strix Halo", "1002:1114": "Krackan Point",
}

// targets says which compiler targets are processors with graphics and which are cards, as the table of AMDGPU processors
// in LLVM's user guide does. gfx942 is in neither: MI300A and MI300X share it.
var targets = map[string]bool{
	"gfx700": true, "gfx703": true, "gfx705": true, "gfx801": true, "gfx810": true, "gfx902": true, "gfx909": true, "gfx90c": true,
	"gfx1013": true, "gfx1033": true, "gfx1035": true, "gfx1036": true, "gfx1103": true, "gfx1150": true, "gfx1151": true,
	"gfx1152": true, "gfx1153": true,
	"gfx701": false, "gfx702": false, "gfx704": false, "gfx802": false, "gfx803": false, "gfx805": false, "gfx900": false,
	"gfx904": false, "gfx906": false, "gfx908": false, "gfx90a": false, "gfx1010": false, "gfx1011": false, "gfx1012": false,
	"gfx1030": false, "gfx1031": false, "gfx1032": false, "gfx1034": false, "gfx1100": false, "gfx1101": false, "gfx1102": false,
	"gfx1200": false, "gfx1201": false,
}

// integrated tells an APU from a card. The driver knows, but tells it only on the render node, which this process may not
// be allowed to open; sysfs has no flag for it (KFD's local_mem_size is 0 for both). Then it takes what the chip is, by
// PCI id or compiler target, then a sign that only one of the two has, and otherwise says unknown.
func integrated(ctx context.Context, m source.Machine, c drm.Card, mem memory, nodes []kfdNode) hwprobe.Flag {
	if flag := askFusion(ctx, m.Calls, c); flag != (hwprobe.Flag{}) {
		return flag
	}
	var node kfdNode // empty where the compute driver does not know the card
	if i := slices.IndexFunc(nodes, func(n kfdNode) bool { return n.pci == c.PCI }); i >= 0 {
		node = nodes[i]
	}
	if flag := chip(c.ID, node.target); flag != (hwprobe.Flag{}) {
		return flag
	}
	// KFD gives an APU's GTT limit as its memory, and a card's VRAM.
	if node.bank != (hwprobe.Bytes{}) && node.bank == mem.gttTotal && node.bank != mem.vramTotal {
		return hwprobe.Known(true)
	}
	if hasCardSign(m.Files, c, mem) {
		return hwprobe.Known(false)
	}
	return hwprobe.Flag{}
}

// chip tells an APU from a card by its PCI id or compiler target; either may be empty.
func chip(id, target string) hwprobe.Flag {
	vendor, device, _ := strings.Cut(id, ":")
	v, errVendor := strconv.ParseUint(vendor, 16, 16)
	d, errDevice := strconv.ParseUint(device, 16, 16)
	if errVendor == nil && errDevice == nil {
		if flag := pciids.Integrated(uint16(v), uint16(d)); flag != (hwprobe.Flag{}) {
			return flag
		}
	}
	if apu, listed := targets[target]; listed {
		return hwprobe.Known(apu)
	}
	return hwprobe.Flag{}
}

func hasCardSign(root fs.FS, c drm.Card, mem memory) bool {
	for _, monitor := range c.Sensors(root) {
		if _, err := fs.Stat(root, path.Join(monitor, "fan1_input")); err == nil {
			return true
		}
	}
	smallWindow := mem.visibleTotal != (hwprobe.Bytes{}) && mem.visibleTotal.Or(0) < mem.vramTotal.Or(0)
	return smallWindow || source.ReadText(root, path.Join(c.Dir, "mem_info_vram_vendor")) != ""
}

// chipNamed tells an APU by a code name in a tool's name for it, such as "Rembrandt [Radeon 680M]".
func chipNamed(names ...string) hwprobe.Flag {
	for _, name := range names {
		for _, apu := range apus {
			if strings.Contains(strings.ToLower(name), strings.ToLower(apu)) {
				return hwprobe.Known(true)
			}
		}
	}
	return hwprobe.Flag{}
}
