package amd

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

const kfdDir = "sys/class/kfd/kfd/topology/nodes"

// kfdNode is a device of the compute driver. A card split into compute partitions has a node for each.
type kfdNode struct {
	pci    string        // normalised, always of function 0
	target string        // compiler target, "gfx1103"
	bank   hwprobe.Bytes // size of its first memory bank: a card's VRAM, but an APU's GTT limit
}

// kfdNodes lists the compute driver's graphics devices; processors are nodes of it, too.
func kfdNodes(root fs.FS) []kfdNode {
	entries, err := fs.ReadDir(root, kfdDir)
	if err != nil {
		return nil
	}
	var nodes []kfdNode
	for _, entry := range entries {
		dir := path.Join(kfdDir, entry.Name())
		node, graphics := parseKFD(source.ReadText(root, path.Join(dir, "properties")))
		if !graphics {
			continue
		}
		bank := source.ReadText(root, path.Join(dir, "mem_banks/0/properties"))
		node.bank = hwprobe.Size(source.ParseUint(source.FieldOf(bank, "size_in_bytes")))
		nodes = append(nodes, node)
	}
	return nodes
}

// parseKFD reads a node's properties. A processor's node has the location 0.
//
// location_id is bus<<8 | device<<3 | function. Of a partitioned card, kernels put the partition's number into bits 28 to
// 31, and some earlier ones into the function, so the function is not read: AMD's graphics are function 0.
func parseKFD(properties string) (node kfdNode, graphics bool) {
	location, err := strconv.ParseUint(source.FieldOf(properties, "location_id"), 10, 32)
	if err != nil || location == 0 {
		return kfdNode{}, false
	}
	domain, err := strconv.ParseUint(source.FieldOf(properties, "domain"), 10, 32)
	if err != nil {
		domain = 0 // kernels before 5.5 do not tell it
	}
	node.pci = fmt.Sprintf("%04x:%02x:%02x.0", domain, location>>8&0xff, location>>3&0x1f)
	if v, err := strconv.ParseUint(source.FieldOf(properties, "gfx_target_version"), 10, 32); err == nil && v > 0 {
		node.target = fmt.Sprintf("gfx%d%x%x", v/10000, v/100%100, v%100) // 90012 is gfx90c
	}
	return node, true
}
