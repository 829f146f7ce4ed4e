package windows

import (
	"context"
	"fmt"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// CallKernel is the name of the call that answers with a list of KernelAdapter. DXGI does not tell where an adapter sits; the
// graphics kernel does (D3DKMTQueryAdapterInfo), which pairs it with nvidia-smi and with the registry.
const CallKernel = "d3dkmt"

// KernelAdapter is what the graphics kernel says of an adapter.
type KernelAdapter struct {
	LUID    uint64      `json:"adapter_luid"`
	Address *BusAddress `json:"address,omitempty"` // D3DKMT_ADAPTERADDRESS; nil when the kernel does not tell
	Type    *uint32     `json:"type,omitempty"`    // D3DKMT_ADAPTERTYPE; nil when the kernel does not tell
}

// BusAddress is a D3DKMT_ADAPTERADDRESS. The bus number has the PCI domain above its lowest 8 bits.
type BusAddress struct {
	Bus      uint32 `json:"bus"`
	Device   uint32 `json:"device"`
	Function uint32 `json:"function"`
}

// readKernel lists the adapters that are there now, by LUID; none where the kernel does not answer.
func readKernel(ctx context.Context, calls source.Caller) map[uint64]KernelAdapter {
	listed, err := source.Ask[[]KernelAdapter](ctx, calls, CallKernel)
	if err != nil {
		return nil // without it adapters are paired by their ids, where that is certain
	}
	byLUID := map[uint64]KernelAdapter{}
	for _, k := range listed {
		if k.LUID != 0 {
			byLUID[k.LUID] = k
		}
	}
	return byLUID
}

func (k KernelAdapter) pci() string {
	if k.Address == nil {
		return ""
	}
	return k.Address.pci()
}

// pci is the address as the rest of the report has it; empty for one that no card can have: 00:00.0 is the bridge of the
// processor itself, and adapters that are no PCI devices have ones beyond PCI's limits.
func (b BusAddress) pci() string {
	if b == (BusAddress{}) || b.Device > 0x1f || b.Function > 7 || b.Bus>>8 > 0xffff {
		return ""
	}
	address, _ := hwprobe.PCIAddress(fmt.Sprintf("%04x:%02x:%02x.%x", b.Bus>>8, b.Bus&0xff, b.Device, b.Function))
	return address
}
