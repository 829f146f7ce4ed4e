package windows

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// CallDXGI is the name of the call that answers with a list of Adapter.
const CallDXGI = "dxgi"

// Adapter is a DXGI_ADAPTER_DESC1.
type Adapter struct {
	Description     string        `json:"description"`
	VendorID        uint32        `json:"vendor_id"`
	DeviceID        uint32        `json:"device_id"`
	SubSysID        uint32        `json:"subsys_id"`
	Revision        uint32        `json:"revision"`
	DedicatedVideo  hwprobe.Bytes `json:"dedicated_video_memory"`  // bytes; less than the chips have, by what the driver keeps
	DedicatedSystem hwprobe.Bytes `json:"dedicated_system_memory"` // bytes of main memory that the firmware set aside
	SharedSystem    hwprobe.Bytes `json:"shared_system_memory"`    // bytes of main memory that the adapter may use
	LUID            uint64        `json:"adapter_luid"`            // high part above the low one; 0 when not told
	Flags           uint32        `json:"flags"`
}

const (
	flagRemote   = 1 // DXGI_ADAPTER_FLAG_REMOTE
	flagSoftware = 2 // DXGI_ADAPTER_FLAG_SOFTWARE
)

// adapter is an Adapter with what the other sources say of the same one.
type adapter struct {
	Adapter
	from    hwprobe.Source // of Adapter
	pci     string
	kind    *uint32 // the kernel's type bits; nil when not told
	display display // the zero value when none is this adapter's for certain
}

func (a adapter) name() string {
	return cmp.Or(a.Description, a.display.name, fmt.Sprintf("graphics adapter (%04x:%04x)", a.VendorID, a.DeviceID))
}

// dedicated is the memory that is the adapter's alone, less what the driver keeps.
func (a adapter) dedicated() hwprobe.Bytes {
	if _, known := a.DedicatedSystem.Value(); !known {
		return a.DedicatedVideo
	}
	return hwprobe.Sum(a.DedicatedVideo, a.DedicatedSystem)
}

func (a adapter) tellsMemory() bool {
	return a.DedicatedVideo != (hwprobe.Bytes{}) || a.SharedSystem != (hwprobe.Bytes{}) || a.display.memory != (hwprobe.Bytes{})
}

// readAdapters lists the adapters that can compute, in no meaningful order. It is an error only when nothing lists them.
func readAdapters(ctx context.Context, calls source.Caller, kernel map[uint64]KernelAdapter) ([]adapter, error) {
	listed, err := source.Ask[[]Adapter](ctx, calls, CallDXGI)
	from := hwprobe.SourceDXGI
	if err != nil {
		var registryErr error
		listed, registryErr = readDirectX(ctx, calls, kernel)
		from = hwprobe.SourceRegistry
		if registryErr != nil {
			return nil, errors.Join(err, registryErr)
		}
	}
	var adapters []adapter
	for _, l := range listed {
		k := kernel[l.LUID]
		a := adapter{Adapter: l, from: from, pci: k.pci(), kind: k.Type}
		if !skipped(a) {
			adapters = append(adapters, a)
		}
	}
	return adapters, nil
}
