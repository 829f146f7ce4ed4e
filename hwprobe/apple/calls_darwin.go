//go:build darwin

package apple

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/ebitengine/purego"
	"github.com/ebitengine/purego/objc"
	"golang.org/x/sys/unix"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// Calls answers CallMetal and CallSysctl on a Mac, without cgo.
func Calls() source.Calls {
	load := sync.OnceValues(loadMetal)
	return source.Calls{
		CallMetal: func(context.Context, ...string) (any, error) {
			metal, err := load()
			if err != nil {
				return nil, err
			}
			return metal.devices(), nil
		},
		CallSysctl: func(_ context.Context, args ...string) (any, error) {
			if len(args) != 1 {
				return nil, errors.New("a sysctl has one name")
			}
			raw, err := unix.SysctlRaw(args[0])
			if err != nil {
				return nil, err
			}
			return integer(raw), nil
		},
	}
}

// metalLibrary is the Metal framework. All messages sent here exist since macOS 10.15, which Go itself needs more than.
type metalLibrary struct {
	copyAllDevices            func() objc.ID
	createSystemDefaultDevice func() objc.ID
}

func loadMetal() (*metalLibrary, error) {
	// Without Core Graphics a program that draws nothing has no default device.
	if _, err := purego.Dlopen("/System/Library/Frameworks/CoreGraphics.framework/CoreGraphics", purego.RTLD_LAZY|purego.RTLD_GLOBAL); err != nil {
		return nil, fmt.Errorf("load Core Graphics: %w", err)
	}
	handle, err := purego.Dlopen("/System/Library/Frameworks/Metal.framework/Metal", purego.RTLD_LAZY|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("load Metal: %w", err)
	}
	m := &metalLibrary{}
	for name, function := range map[string]any{
		"MTLCopyAllDevices":            &m.copyAllDevices,
		"MTLCreateSystemDefaultDevice": &m.createSystemDefaultDevice,
	} {
		symbol, err := purego.Dlsym(handle, name)
		if err != nil {
			return nil, fmt.Errorf("load Metal: %w", err)
		}
		purego.RegisterFunc(function, symbol)
	}
	return m, nil
}

// devices lists all GPUs. Intel Macs have up to four; asking for all of them does not switch to the faster one.
func (m *metalLibrary) devices() []MetalDevice {
	runtime.LockOSThread() // an autorelease pool belongs to its thread
	defer runtime.UnlockOSThread()
	pool := objc.ID(objc.GetClass("NSAutoreleasePool")).Send(objc.RegisterName("new"))
	defer pool.Send(objc.RegisterName("drain"))

	list := []MetalDevice{}
	all := m.copyAllDevices()
	if all != 0 {
		defer all.Send(objc.RegisterName("release")) // "Copy" hands over a reference
		for i := range objc.Send[uint](all, objc.RegisterName("count")) {
			list = append(list, describe(objc.Send[objc.ID](all, objc.RegisterName("objectAtIndex:"), i)))
		}
	}
	if len(list) > 0 {
		return list
	}
	if device := m.createSystemDefaultDevice(); device != 0 {
		defer device.Send(objc.RegisterName("release"))
		list = append(list, describe(device))
	}
	return list
}

func describe(device objc.ID) MetalDevice {
	number := func(property string) uint64 { return objc.Send[uint64](device, objc.RegisterName(property)) }
	d := MetalDevice{
		RegistryID:       number("registryID"),
		HasUnifiedMemory: hwprobe.Known(objc.Send[bool](device, objc.RegisterName("hasUnifiedMemory"))),
		MaxWorkingSet:    hwprobe.Known(number("recommendedMaxWorkingSetSize")),
		Allocated:        hwprobe.Known(number("currentAllocatedSize")),
	}
	if name := objc.Send[objc.ID](device, objc.RegisterName("name")); name != 0 {
		d.Name = objc.Send[string](name, objc.RegisterName("UTF8String"))
	}
	return d
}
