//go:build windows

package windows

import (
	"fmt"
	"syscall"
	"unsafe"

	win "golang.org/x/sys/windows"
)

var createFactory = win.NewLazySystemDLL("dxgi.dll").NewProc("CreateDXGIFactory1")

// notFound is DXGI_ERROR_NOT_FOUND: there is no adapter of that number.
const notFound = 0x887a0002

// comObject is what an interface pointer points to. It is not Go memory.
type comObject struct {
	methods *[methodEnumAdapters1 + 1]uintptr
}

func (o *comObject) release() { syscall.SyscallN(o.methods[methodRelease], uintptr(unsafe.Pointer(o))) }

func (o *comObject) enumAdapters1(number uint32, adapter **comObject) uint32 {
	result, _, _ := syscall.SyscallN(o.methods[methodEnumAdapters1], uintptr(unsafe.Pointer(o)), uintptr(number), uintptr(unsafe.Pointer(adapter)))
	return uint32(result)
}

func (o *comObject) getDesc1(desc *adapterDesc) uint32 {
	result, _, _ := syscall.SyscallN(o.methods[methodGetDesc1], uintptr(unsafe.Pointer(o)), uintptr(unsafe.Pointer(desc)))
	return uint32(result)
}

func dxgiAdapters() ([]Adapter, error) {
	if err := createFactory.Find(); err != nil {
		return nil, err
	}
	var factory *comObject
	result, _, _ := createFactory.Call(uintptr(unsafe.Pointer(&iidFactory1)), uintptr(unsafe.Pointer(&factory)))
	if int32(result) < 0 || factory == nil {
		return nil, fmt.Errorf("CreateDXGIFactory1: %#x", uint32(result))
	}
	defer factory.release()
	adapters := []Adapter{}
	for number := uint32(0); ; number++ {
		var adapter *comObject
		if result := factory.enumAdapters1(number, &adapter); result == notFound {
			return adapters, nil
		} else if int32(result) < 0 || adapter == nil {
			return nil, fmt.Errorf("EnumAdapters1: %#x", result)
		}
		var desc adapterDesc
		result := adapter.getDesc1(&desc)
		adapter.release()
		if int32(result) < 0 {
			return nil, fmt.Errorf("GetDesc1: %#x", result)
		}
		adapters = append(adapters, desc.adapter())
	}
}
