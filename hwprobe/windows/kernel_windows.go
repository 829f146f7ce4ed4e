//go:build windows

package windows

import (
	"fmt"
	"unsafe"

	win "golang.org/x/sys/windows"
)

// The graphics kernel is asked through gdi32.dll. It answers with an NTSTATUS, negative for a failure.
var (
	gdi32             = win.NewLazySystemDLL("gdi32.dll")
	enumAdapters2     = gdi32.NewProc("D3DKMTEnumAdapters2")
	queryAdapterInfo  = gdi32.NewProc("D3DKMTQueryAdapterInfo")
	closeAdapter      = gdi32.NewProc("D3DKMTCloseAdapter")
	kernelProcedures  = []*win.LazyProc{enumAdapters2, queryAdapterInfo, closeAdapter}
	mostKernelEntries = uint32(64) // a machine has at most as many adapters as this
)

func kernelAdapters() ([]KernelAdapter, error) {
	for _, p := range kernelProcedures {
		if err := p.Find(); err != nil {
			return nil, err
		}
	}
	infos := make([]kernelInfo, mostKernelEntries)
	list := kernelList{count: mostKernelEntries, adapters: &infos[0]}
	if status, _, _ := enumAdapters2.Call(uintptr(unsafe.Pointer(&list))); int32(status) < 0 {
		return nil, fmt.Errorf("D3DKMTEnumAdapters2: %#x", uint32(status))
	}
	adapters := []KernelAdapter{}
	for _, info := range infos[:min(list.count, mostKernelEntries)] {
		adapters = append(adapters, describeKernel(info))
		handle := info.handle
		closeAdapter.Call(uintptr(unsafe.Pointer(&handle))) // D3DKMT_CLOSEADAPTER is the handle alone
	}
	return adapters, nil
}

func describeKernel(info kernelInfo) KernelAdapter {
	k := KernelAdapter{LUID: info.luid.number()}
	var address [3]uint32
	if ask(info.handle, queryAddress, address[:]) {
		k.Address = &BusAddress{Bus: address[0], Device: address[1], Function: address[2]}
	}
	var kind [1]uint32
	if ask(info.handle, queryType, kind[:]) {
		k.Type = &kind[0]
	}
	return k
}

func ask(handle, kind uint32, answer []uint32) bool {
	query := kernelQuery{handle: handle, kind: kind, answer: &answer[0], size: uint32(len(answer)) * 4}
	status, _, _ := queryAdapterInfo.Call(uintptr(unsafe.Pointer(&query)))
	return int32(status) >= 0
}
