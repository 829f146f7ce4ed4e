package windows

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// pc is what a Windows machine answers; nothing in a field means that this source does not answer.
type pc struct {
	arch     string // "amd64" when empty
	dxgi     []Adapter
	kernel   []KernelAdapter
	registry map[string][]RegistryKey
	counters map[string][]CounterValue
	host     hwprobe.Host
}

var errRefused = errors.New("refused")

func answer[T any](value T, told bool) source.Call {
	return func(context.Context, ...string) (any, error) {
		if !told {
			return nil, errRefused
		}
		return value, nil
	}
}

func (p pc) probe(t *testing.T) hwprobe.Findings {
	t.Helper()
	calls := source.Calls{
		CallDXGI: answer(p.dxgi, p.dxgi != nil), CallKernel: answer(p.kernel, p.kernel != nil), CallCounters: answer(p.counters, p.counters != nil),
		CallRegistry: func(_ context.Context, args ...string) (any, error) {
			for _, value := range args[2:] { // both say 2 or 4 GB of every larger card
				if value == "HardwareInformation.MemorySize" || value == "AdapterRAM" {
					t.Errorf("asked for %s", value)
				}
			}
			keys, told := p.registry[args[0]]
			if !told {
				return nil, errRefused
			}
			return keys, nil
		},
	}
	if p.arch == "" {
		p.arch = "amd64"
	}
	return Probe(t.Context(), source.Machine{OS: "windows", Arch: p.arch, Files: fstest.MapFS{}, Calls: calls}, p.host)
}

func gib(n uint64) hwprobe.Bytes { return hwprobe.Known(n << 30) }

func mib(n uint64) hwprobe.Bytes { return hwprobe.Known(n << 20) }

// at is the kernel's word on where the adapter with this LUID sits.
func at(luid uint64, bus uint32) KernelAdapter {
	return KernelAdapter{LUID: luid, Address: &BusAddress{Bus: bus}}
}

func number(n uint64) RegistryValue { return RegistryValue{Number: hwprobe.Known(n)} }

// driver is a driver's key and the key of the device that it is for.
func driver(name, ids, slot string, size RegistryValue) (RegistryKey, RegistryKey) {
	return RegistryKey{Name: name, Values: map[string]RegistryValue{"DriverDesc": {Text: "driver " + name}, "DriverVersion": {Text: "32.0." + name},
			"MatchingDeviceId": {Text: `pci\` + ids}, "HardwareInformation.qwMemorySize": size}},
		RegistryKey{Name: ids + `\4&2b0&0&0008`, Values: map[string]RegistryValue{"Driver": {Text: `{4D36E968-E325-11CE-BFC1-08002BE10318}\` + name},
			"LocationInformation": {Text: `@System32\drivers\pci.sys,#65536;PCI bus %1, device %2, function %3;(` + slot + `)`}}}
}

// counters are the values of both counters by instance: dedicated, then shared.
func counters(values map[string][2]int64) map[string][]CounterValue {
	all := map[string][]CounterValue{}
	for instance, v := range values {
		all[dedicatedUsage] = append(all[dedicatedUsage], CounterValue{Instance: instance, Value: v[0]})
		all[sharedUsage] = append(all[sharedUsage], CounterValue{Instance: instance, Value: v[1]})
	}
	return all
}

func only(t *testing.T, f hwprobe.Findings) (hwprobe.Device, hwprobe.Pool) {
	t.Helper()
	if len(f.Devices) != 1 || len(f.Pools) != 1 {
		t.Fatalf("devices %+v, pools %+v; want one of each", f.Devices, f.Pools)
	}
	return f.Devices[0], f.Pools[0]
}

// on returns the device at an address and its pool.
func on(t *testing.T, f hwprobe.Findings, pci string) (hwprobe.Device, hwprobe.Pool) {
	t.Helper()
	i := slices.IndexFunc(f.Devices, func(d hwprobe.Device) bool { return d.PCI == pci })
	if i < 0 {
		t.Fatalf("no device at %s: %+v", pci, f.Devices)
	}
	k := slices.IndexFunc(f.Pools, func(p hwprobe.Pool) bool { return p.ID == f.Devices[i].Pool })
	if k < 0 {
		return f.Devices[i], hwprobe.Pool{}
	}
	return f.Devices[i], f.Pools[k]
}

func codes(f hwprobe.Findings) []hwprobe.WarningCode {
	var list []hwprobe.WarningCode
	for _, w := range f.Warnings {
		list = append(list, w.Code)
	}
	return list
}
