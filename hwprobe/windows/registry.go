package windows

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// CallRegistry is the name of the call that answers with a list of RegistryKey: of the keys that lie depth levels (1 or 2)
// below a key of HKEY_LOCAL_MACHINE those with any of the values. Its arguments are the key, the depth and the values' names.
const CallRegistry = "registry"

// RegistryKey is a key with the values that were asked for and that it has.
type RegistryKey struct {
	Name   string                   `json:"name"` // below the key that was asked for
	Values map[string]RegistryValue `json:"values"`
}

// RegistryValue is a value in one of its forms: a number of REG_DWORD or REG_QWORD, a text of REG_SZ or REG_EXPAND_SZ, or
// bytes of any other type.
type RegistryValue struct {
	Number hwprobe.Bytes `json:"number,omitzero"`
	Text   string        `json:"text,omitempty"`
	Hex    string        `json:"hex,omitempty"`
}

func (k RegistryKey) text(name string) string { return k.Values[name].Text }

// number is a value's number. Drivers write numbers as bytes, too: lowest first, 4 or 8 of them.
func (k RegistryKey) number(name string) hwprobe.Bytes {
	v := k.Values[name]
	if v.Number != (hwprobe.Bytes{}) {
		return v.Number
	}
	raw, err := hex.DecodeString(v.Hex)
	switch {
	case err == nil && len(raw) == 4:
		return hwprobe.Known(uint64(binary.LittleEndian.Uint32(raw)))
	case err == nil && len(raw) == 8:
		return hwprobe.Known(binary.LittleEndian.Uint64(raw))
	}
	return hwprobe.Bytes{}
}

func (k RegistryKey) number32(name string) uint32 {
	n := k.number(name).Or(0)
	if n > 0xffffffff {
		return 0
	}
	return uint32(n)
}

func askRegistry(ctx context.Context, calls source.Caller, key string, depth int, values ...string) ([]RegistryKey, error) {
	args := append([]string{key, strconv.Itoa(depth)}, values...)
	return source.Ask[[]RegistryKey](ctx, calls, CallRegistry, args...)
}

// keyDirectX has a record for each adapter that DirectX has seen, also for those that are gone.
const keyDirectX = `SOFTWARE\Microsoft\DirectX`

// readDirectX lists the adapters as DirectX recorded them. Where the kernel tells which adapters are there, the others are
// left out.
func readDirectX(ctx context.Context, calls source.Caller, kernel map[uint64]KernelAdapter) ([]Adapter, error) {
	records, err := askRegistry(ctx, calls, keyDirectX, 1, "Description", "VendorId", "DeviceId", "SubSysId", "Revision",
		"DedicatedVideoMemory", "DedicatedSystemMemory", "SharedSystemMemory", "AdapterLuid")
	if err != nil {
		return nil, err
	}
	var adapters []Adapter
	for _, r := range records {
		luid := r.number("AdapterLuid").Or(0)
		if _, there := kernel[luid]; len(kernel) > 0 && !there {
			continue
		}
		adapters = append(adapters, Adapter{
			Description: r.text("Description"), LUID: luid,
			VendorID: r.number32("VendorId"), DeviceID: r.number32("DeviceId"), SubSysID: r.number32("SubSysId"), Revision: r.number32("Revision"),
			DedicatedVideo: r.number("DedicatedVideoMemory"), DedicatedSystem: r.number("DedicatedSystemMemory"), SharedSystem: r.number("SharedSystemMemory"),
		})
	}
	return adapters, nil
}
