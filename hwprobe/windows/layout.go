package windows

import (
	"unicode/utf16"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

// The structures that Windows fills, as its headers have them where pointers have 8 bytes. They are here, and not beside the
// calls, so that a test holds their sizes to the documented ones on every system.

// adapterDesc is DXGI_ADAPTER_DESC1 of dxgi.h.
type adapterDesc struct {
	description     [128]uint16
	vendorID        uint32
	deviceID        uint32
	subSysID        uint32
	revision        uint32
	dedicatedVideo  uint64
	dedicatedSystem uint64
	sharedSystem    uint64
	luid            luid
	flags           uint32
}

// luid is LUID of winnt.h.
type luid struct {
	low  uint32
	high int32
}

func (l luid) number() uint64 { return uint64(uint32(l.high))<<32 | uint64(l.low) }

// kernelInfo is D3DKMT_ADAPTERINFO of d3dkmthk.h.
type kernelInfo struct {
	handle        uint32
	luid          luid
	sources       uint32
	precisePlaces int32
}

// kernelList is D3DKMT_ENUMADAPTERS2.
type kernelList struct {
	count    uint32
	adapters *kernelInfo
}

// kernelQuery is D3DKMT_QUERYADAPTERINFO; answer points to size bytes.
type kernelQuery struct {
	handle uint32
	kind   uint32
	answer *uint32
	size   uint32
}

// The kinds of kernelQuery: KMTQAITYPE_ADAPTERADDRESS and KMTQAITYPE_ADAPTERTYPE.
const (
	queryAddress = 6
	queryType    = 15
)

// guid is GUID of guiddef.h.
type guid struct {
	data1 uint32
	data2 uint16
	data3 uint16
	data4 [8]byte
}

// iidFactory1 is IID_IDXGIFactory1, 770aae78-f26f-4dba-a829-253c83d1b387.
var iidFactory1 = guid{0x770aae78, 0xf26f, 0x4dba, [8]byte{0xa8, 0x29, 0x25, 0x3c, 0x83, 0xd1, 0xb3, 0x87}}

// Places in the interfaces' tables of methods: IUnknown has 3, IDXGIObject 4 more, IDXGIFactory 5 and IDXGIAdapter 3 more.
const (
	methodRelease       = 2
	methodEnumAdapters1 = 12 // IDXGIFactory1
	methodGetDesc1      = 10 // IDXGIAdapter1
)

func (d adapterDesc) adapter() Adapter {
	name := d.description[:]
	for i, unit := range name {
		if unit == 0 {
			name = name[:i]
			break
		}
	}
	return Adapter{
		Description: string(utf16.Decode(name)), VendorID: d.vendorID, DeviceID: d.deviceID, SubSysID: d.subSysID, Revision: d.revision,
		DedicatedVideo: hwprobe.Known(d.dedicatedVideo), DedicatedSystem: hwprobe.Known(d.dedicatedSystem), SharedSystem: hwprobe.Known(d.sharedSystem),
		LUID: d.luid.number(), Flags: d.flags,
	}
}
