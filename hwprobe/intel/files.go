package intel

import (
	"io/fs"
	"path"
	"strings"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/drm"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// fileMemory is what files tell of a card's memory. Most machines have none of them.
type fileMemory struct{ total, free hwprobe.Bytes }

// readFiles reads the size from Intel's own i915 (lmem_total_bytes) or some kernels' xe (physical_vram_size_bytes of each
// tile), and size and use from xe's debugfs, which only root may read.
func readFiles(root fs.FS, c drm.Card) fileMemory {
	if m := readVRAMManager(root, c); m.total != (hwprobe.Bytes{}) {
		return m
	}
	if total := hwprobe.Size(source.ReadUint(root, path.Join(path.Dir(c.Dir), "lmem_total_bytes"))); total != (hwprobe.Bytes{}) {
		return fileMemory{total: total}
	}
	tiles, _ := fs.Glob(root, path.Join(c.Dir, "tile*/physical_vram_size_bytes"))
	var m fileMemory
	for i, tile := range tiles {
		if size := hwprobe.Size(source.ReadUint(root, tile)); i == 0 {
			m.total = size
		} else {
			m.total = hwprobe.Sum(m.total, size)
		}
	}
	return m
}

// readVRAMManager adds the tiles' memory managers up. Debugfs names a card by its address, older kernels by its number.
func readVRAMManager(root fs.FS, c drm.Card) fileMemory {
	const dir = "sys/kernel/debug/dri"
	for _, name := range []string{c.PCI, strings.TrimPrefix(c.Name, "card")} {
		if name == "" {
			continue
		}
		files, _ := fs.Glob(root, path.Join(dir, name, "tile*/vram_mm"))
		if len(files) == 0 {
			files, _ = fs.Glob(root, path.Join(dir, name, "vram[0-9]_mm"))
		}
		var sum fileMemory
		for i, file := range files {
			if m := parseVRAMManager(source.ReadText(root, file)); i == 0 {
				sum = m
			} else {
				sum = fileMemory{total: hwprobe.Sum(sum.total, m.total), free: hwprobe.Sum(sum.free, m.free)}
			}
		}
		if len(files) > 0 {
			return sum
		}
	}
	return fileMemory{}
}

// parseVRAMManager reads the lines "size: 8522825728" and "usage: 32079872", in bytes.
func parseVRAMManager(text string) fileMemory {
	fields := strings.ReplaceAll(text, ":", " ")
	total := hwprobe.Size(source.ParseUint(source.FieldOf(fields, "size")))
	return fileMemory{total: total, free: hwprobe.Sub(total, source.ParseUint(source.FieldOf(fields, "usage")))}
}

// statusFields is this process's /proc/self/status as lines of key and value.
func statusFields(root fs.FS) string {
	return strings.NewReplacer(":\t", " ", "\t", " ").Replace(source.ReadText(root, "proc/self/status"))
}
