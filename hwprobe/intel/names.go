package intel

import (
	"fmt"

	"github.com/loopkeeper/loopkeeper/hwprobe/drm"
)

// names are of cards by PCI id, from the public PCI id list; the driver tells none. Nothing is ever concluded from one.
var names = map[string]string{
	"8086:4905": "Intel Iris Xe MAX", "8086:5690": "Intel Arc A770M", "8086:5691": "Intel Arc A730M", "8086:5692": "Intel Arc A550M",
	"8086:5693": "Intel Arc A370M", "8086:5694": "Intel Arc A350M", "8086:5696": "Intel Arc A570M", "8086:5697": "Intel Arc A530M",
	"8086:56a0": "Intel Arc A770", "8086:56a1": "Intel Arc A750", "8086:56a2": "Intel Arc A580", "8086:56a5": "Intel Arc A380",
	"8086:56a6": "Intel Arc A310", "8086:56b1": "Intel Arc Pro A40/A50", "8086:56b3": "Intel Arc Pro A60",
	"8086:56c0": "Intel Data Center GPU Flex 170", "8086:56c1": "Intel Data Center GPU Flex 140",
	"8086:e20b": "Intel Arc B580", "8086:e20c": "Intel Arc B570", "8086:e211": "Intel Arc Pro B60", "8086:e212": "Intel Arc Pro B50",
}

func cardName(c drm.Card) string {
	if name, listed := names[c.ID]; listed {
		return name
	}
	return fmt.Sprintf("Intel Graphics (%s)", c.ID)
}
