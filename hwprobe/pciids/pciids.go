// Package pciids says of a PCI id whether it is a processor's own graphics or a card with memory of its own. It says what a
// chip is, never how much memory it has: cards of one id are sold with different memory.
package pciids

import "github.com/loopkeeper/loopkeeper/hwprobe"

// The vendors whose ids are known here, and NVIDIA's.
const (
	AMD    = 0x1002
	NVIDIA = 0x10de
	Intel  = 0x8086
)

// mi300A is AMD's one accelerator whose processor and graphics share all memory chips.
const mi300A = 0x74a0

// Integrated tells a processor's graphics (true) from a card (false). A vendor or a family that is not listed is unknown.
func Integrated(vendor, device uint16) hwprobe.Flag {
	switch {
	case vendor == AMD && device == mi300A:
		return hwprobe.Known(true)
	case vendor == AMD && amdProcessors[device>>8]:
		return hwprobe.Known(true)
	case vendor == AMD && amdCards[device>>8], vendor == Intel && intelCards[device>>8]:
		return hwprobe.Known(false)
	case vendor == Intel && intelProcessors[device>>8]:
		return hwprobe.Known(true)
	}
	return hwprobe.Flag{}
}

// Both vendors give a family of chips ids with one high byte and never use it for the other kind again. AMD's are from the
// table of the Linux amdgpu driver and, for chips younger than that table, from the public PCI id list.
var (
	amdProcessors = families(0x11, // Krackan Point
		0x13,       // Kaveri, Granite Ridge
		0x14,       // Sephiroth
		0x15,       // Raven, Picasso, Barcelo, Mendocino, Phoenix, Strix
		0x16,       // Renoir, Cezanne, Van Gogh, Rembrandt, Raphael
		0x19,       // Hawk Point
		0x98, 0x99) // Kabini, Mullins, Carrizo, Stoney; Trinity
	amdCards = families(0x66, 0x67, 0x68, 0x69, 0x6f, // Southern Islands to Vega
		0x73, 0x74, 0x75) // Fiji, Instinct and RDNA
)

// Intel's are from the table of the Linux i915 and xe drivers (include/drm/intel/pciids.h).
var (
	intelProcessors = families(0x00, 0x01, 0x04, 0x0a, 0x0c, 0x0d, 0x0f, 0x16, 0x22, // Ironlake to Cherryview
		0x19, 0x1a, 0x31, 0x3e, 0x59, 0x5a, 0x87, 0x9b, // Skylake to Comet Lake
		0x45, 0x46, 0x4c, 0x4e, 0x8a, 0x9a, 0xa7, // Ice Lake to Raptor Lake
		0x64, 0x7d, 0xb0, 0xb6, 0xd7, 0xfd) // Meteor Lake to Nova Lake
	intelCards = families(0x0b, 0x49, 0x4f, 0x56, 0x67, 0xe2) // Ponte Vecchio, DG1, Alchemist, Crescent Island, Battlemage
)

func families(high ...uint16) map[uint16]bool {
	set := map[uint16]bool{}
	for _, h := range high {
		set[h] = true
	}
	return set
}
