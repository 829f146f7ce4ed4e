package apple

import (
	"context"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// CallMetal is the name of the call that answers with a list of MetalDevice.
const CallMetal = "metal"

// MetalDevice is what a MTLDevice says of itself.
type MetalDevice struct {
	Name             string        `json:"name"`
	RegistryID       uint64        `json:"registry_id"`
	HasUnifiedMemory hwprobe.Flag  `json:"has_unified_memory"`
	MaxWorkingSet    hwprobe.Bytes `json:"recommended_max_working_set_size"` // bytes that the system lets the device use
	Allocated        hwprobe.Bytes `json:"current_allocated_size"`           // bytes, of the asking process only
}

// readMetal lists the GPUs that Metal tells. An error means that it cannot be reached, not that there is none.
func readMetal(ctx context.Context, calls source.Caller) ([]gpu, error) {
	devices, err := source.Ask[[]MetalDevice](ctx, calls, CallMetal)
	if err != nil {
		return nil, err
	}
	var gpus []gpu
	for _, d := range devices {
		g := gpu{name: d.Name, vendor: vendorOf(d.Name), registry: d.RegistryID, unified: d.HasUnifiedMemory, from: hwprobe.SourceMetal}
		if g.vendor == hwprobe.Apple {
			g.unified = hwprobe.Known(true) // Apple makes no other
		}
		g.memory = hwprobe.Size(d.MaxWorkingSet)
		gpus = append(gpus, g)
	}
	return gpus, nil
}
