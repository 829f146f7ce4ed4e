package windows

import (
	"encoding/binary"
	"testing"
	"unicode/utf16"
	"unsafe"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

// The offsets follow from the documented members and C's rules of alignment on 64-bit Windows (dxgi.h, d3dkmthk.h, winnt.h).
// A mistake here would not fail on Windows: it would read other members.
func TestStructuresAreLaidOutAsWindowsFillsThem(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the structures are those of 64-bit Windows")
	}
	var desc adapterDesc
	var info kernelInfo
	var list kernelList
	var query kernelQuery
	var id guid
	for name, c := range map[string][2]uintptr{
		"DXGI_ADAPTER_DESC1":                       {unsafe.Sizeof(desc), 312},
		"DXGI_ADAPTER_DESC1.VendorId":              {unsafe.Offsetof(desc.vendorID), 256},
		"DXGI_ADAPTER_DESC1.DeviceId":              {unsafe.Offsetof(desc.deviceID), 260},
		"DXGI_ADAPTER_DESC1.SubSysId":              {unsafe.Offsetof(desc.subSysID), 264},
		"DXGI_ADAPTER_DESC1.Revision":              {unsafe.Offsetof(desc.revision), 268},
		"DXGI_ADAPTER_DESC1.DedicatedVideoMemory":  {unsafe.Offsetof(desc.dedicatedVideo), 272},
		"DXGI_ADAPTER_DESC1.DedicatedSystemMemory": {unsafe.Offsetof(desc.dedicatedSystem), 280},
		"DXGI_ADAPTER_DESC1.SharedSystemMemory":    {unsafe.Offsetof(desc.sharedSystem), 288},
		"DXGI_ADAPTER_DESC1.AdapterLuid":           {unsafe.Offsetof(desc.luid), 296},
		"DXGI_ADAPTER_DESC1.Flags":                 {unsafe.Offsetof(desc.flags), 304},
		"D3DKMT_ADAPTERINFO":                       {unsafe.Sizeof(info), 20},
		"D3DKMT_ADAPTERINFO.hAdapter":              {unsafe.Offsetof(info.handle), 0},
		"D3DKMT_ADAPTERINFO.AdapterLuid":           {unsafe.Offsetof(info.luid), 4},
		"D3DKMT_ADAPTERINFO.NumOfSources":          {unsafe.Offsetof(info.sources), 12},
		"D3DKMT_ADAPTERINFO.bPrecisePresent…":      {unsafe.Offsetof(info.precisePlaces), 16},
		"D3DKMT_ENUMADAPTERS2":                     {unsafe.Sizeof(list), 16},
		"D3DKMT_ENUMADAPTERS2.NumAdapters":         {unsafe.Offsetof(list.count), 0},
		"D3DKMT_ENUMADAPTERS2.pAdapters":           {unsafe.Offsetof(list.adapters), 8},
		"D3DKMT_QUERYADAPTERINFO":                  {unsafe.Sizeof(query), 24},
		"D3DKMT_QUERYADAPTERINFO.hAdapter":         {unsafe.Offsetof(query.handle), 0},
		"D3DKMT_QUERYADAPTERINFO.Type":             {unsafe.Offsetof(query.kind), 4},
		"D3DKMT_QUERYADAPTERINFO.pPrivateDriver…":  {unsafe.Offsetof(query.answer), 8},
		"D3DKMT_QUERYADAPTERINFO.PrivateDriver…":   {unsafe.Offsetof(query.size), 16},
		"GUID":       {unsafe.Sizeof(id), 16},
		"GUID.Data4": {unsafe.Offsetof(id.data4), 8},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: %d, want %d", name, c[0], c[1])
		}
	}
}

func TestTheFactorysIdIsIDXGIFactory1s(t *testing.T) {
	const want = "\x78\xae\x0a\x77\x6f\xf2\xba\x4d\xa8\x29\x25\x3c\x83\xd1\xb3\x87" // 770aae78-f26f-4dba-a829-253c83d1b387 in memory
	if got := *(*[16]byte)(unsafe.Pointer(&iidFactory1)); string(got[:]) != want {
		t.Errorf("%x, want %x", got, want)
	}
}

// The places are counted from the headers: each interface's table begins with those of the ones that it extends.
func TestMethodsAreCalledByTheirPlaces(t *testing.T) {
	unknown := []string{"QueryInterface", "AddRef", "Release"}
	object := append(unknown, "SetPrivateData", "SetPrivateDataInterface", "GetPrivateData", "GetParent")
	factory := append(append([]string{}, object...), "EnumAdapters", "MakeWindowAssociation", "GetWindowAssociation", "CreateSwapChain", "CreateSoftwareAdapter", "EnumAdapters1", "IsCurrent")
	adapter := append(append([]string{}, object...), "EnumOutputs", "GetDesc", "CheckInterfaceSupport", "GetDesc1")
	if unknown[methodRelease] != "Release" || factory[methodEnumAdapters1] != "EnumAdapters1" || adapter[methodGetDesc1] != "GetDesc1" {
		t.Errorf("%s, %s, %s", unknown[methodRelease], factory[methodEnumAdapters1], adapter[methodGetDesc1])
	}
	if queryAddress != 6 || queryType != 15 { // KMTQUERYADAPTERINFOTYPE
		t.Error("the kinds of questions to the kernel are others")
	}
}

func TestDescriptionsEndAtTheirNUL(t *testing.T) {
	desc := adapterDesc{vendorID: 0x1002, dedicatedVideo: 1 << 30, luid: luid{low: 0x1532a, high: -1}}
	copy(desc.description[:], utf16.Encode([]rune("Radeon™ 8060S\x00left over from before")))
	want := Adapter{Description: "Radeon™ 8060S", VendorID: 0x1002, DedicatedVideo: gib(1), DedicatedSystem: gib(0), SharedSystem: gib(0), LUID: 0xffffffff0001532a}
	if got := desc.adapter(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for i := range desc.description {
		desc.description[i] = 'x'
	}
	if got := desc.adapter().Description; len(got) != 128 {
		t.Errorf("%d characters of a description without an end", len(got))
	}
}

// counterBuffer is what PDH writes at address base: items, and behind them their names.
func counterBuffer(base uint64, values ...CounterValue) []byte {
	items, names := make([]byte, len(values)*counterItemSize), []byte{}
	for i, v := range values {
		item := items[i*counterItemSize:]
		binary.LittleEndian.PutUint64(item, base+uint64(len(items)+len(names)))
		binary.LittleEndian.PutUint32(item[8:], v.Status)
		binary.LittleEndian.PutUint64(item[16:], uint64(v.Value))
		for _, unit := range append(utf16.Encode([]rune(v.Instance)), 0) {
			names = binary.LittleEndian.AppendUint16(names, unit)
		}
	}
	return append(items, names...)
}

func TestCountersAreDecodedAsPDHLaysThemOut(t *testing.T) {
	want := []CounterValue{
		{Instance: "luid_0x00000000_0x0001532a_phys_0", Value: 947 << 20},
		{Instance: "luid_0x00000000_0x00017099_phys_0", Status: 1, Value: 5},
	}
	const base = 0xc000123450
	buffer := counterBuffer(base, want...)
	if got := decodeCounters(buffer, base, 2); len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := decodeCounters(buffer, base, 1<<31); len(got) > len(buffer)/counterItemSize {
		t.Errorf("%d items of %d bytes", len(got), len(buffer))
	}
	if got := decodeCounters(buffer, base+1<<20, 2); len(got) != 0 {
		t.Errorf("%+v by names that are outside the buffer", got)
	}
	if got := decodeCounters(buffer[:counterItemSize-1], base, 2); len(got) != 0 {
		t.Errorf("%+v of half an item", got)
	}
}

func TestNumbersOfTheRegistryInAllTheirForms(t *testing.T) {
	for name, c := range map[string]struct {
		value RegistryValue
		want  hwprobe.Bytes
	}{
		"REG_QWORD":            {number(12878610432), hwprobe.Known[uint64](12878610432)},
		"8 bytes":              {RegistryValue{Hex: "0000a0ff02000000"}, hwprobe.Known[uint64](12878610432)},
		"4 bytes":              {RegistryValue{Hex: "00f0ff7f"}, hwprobe.Known[uint64](2147479552)},
		"zero is a number":     {number(0), hwprobe.Known[uint64](0)},
		"another width":        {RegistryValue{Hex: "00f0ff"}, hwprobe.Bytes{}},
		"no bytes":             {RegistryValue{Hex: "0x00f0ff7f"}, hwprobe.Bytes{}},
		"a text is no number":  {RegistryValue{Text: "12878610432"}, hwprobe.Bytes{}},
		"a value that is none": {RegistryValue{}, hwprobe.Bytes{}},
	} {
		if got := (RegistryKey{Values: map[string]RegistryValue{"x": c.value}}).number("x"); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if got := (RegistryKey{Values: map[string]RegistryValue{"x": number(1<<32 + 0x1002)}}).number32("x"); got != 0 {
		t.Errorf("%#x of a number that is too large for an id", got)
	}
}
