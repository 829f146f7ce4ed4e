package intel

import (
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math"
	"strconv"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/drm"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// The names of the calls that ask a driver for the memory regions that a card can use. Their arguments are the render node
// and the card's PCI address; they answer with a list of XeRegion or I915Region.
const (
	CallXeRegions   = "drm-xe-mem-regions"
	CallI915Regions = "drm-i915-memory-regions"
)

// XeRegion is struct drm_xe_mem_region of the kernel's include/uapi/drm/xe_drm.h, in part. Without CAP_PERFMON or
// CAP_SYS_ADMIN the kernel says that nothing is used.
type XeRegion struct {
	Class     uint16 `json:"mem_class"` // 0 system memory, 1 the card's own
	Instance  uint16 `json:"instance"`
	TotalSize uint64 `json:"total_size"` // bytes
	Used      uint64 `json:"used"`       // bytes
}

// I915Region is struct drm_i915_memory_region_info of the kernel's include/uapi/drm/i915_drm.h, in part. Without CAP_PERFMON
// or CAP_SYS_ADMIN the kernel says that all is unallocated. math.MaxUint64 is unknown.
type I915Region struct {
	Class           uint16 `json:"memory_class"` // 0 system memory, 1 the card's own
	Instance        uint16 `json:"memory_instance"`
	ProbedSize      uint64 `json:"probed_size"`      // bytes
	UnallocatedSize uint64 `json:"unallocated_size"` // bytes
}

// classDevice is DRM_XE_MEM_REGION_CLASS_VRAM and I915_MEMORY_CLASS_DEVICE.
const classDevice = 1

// The sizes in bytes of the structures that the drivers answer with: a head whose first word counts the regions, and one
// structure for each.
const (
	xeHead, xeRegion     = 8, 88
	i915Head, i915Region = 16, 88
)

func decodeXe(reply []byte) ([]XeRegion, error) {
	var list []XeRegion
	err := eachRegion(reply, xeHead, xeRegion, func(r []byte) {
		list = append(list, XeRegion{Class: binary.NativeEndian.Uint16(r), Instance: binary.NativeEndian.Uint16(r[2:]),
			TotalSize: binary.NativeEndian.Uint64(r[8:]), Used: binary.NativeEndian.Uint64(r[16:])})
	})
	return list, err
}

func decodeI915(reply []byte) ([]I915Region, error) {
	var list []I915Region
	err := eachRegion(reply, i915Head, i915Region, func(r []byte) {
		list = append(list, I915Region{Class: binary.NativeEndian.Uint16(r), Instance: binary.NativeEndian.Uint16(r[2:]),
			ProbedSize: binary.NativeEndian.Uint64(r[8:]), UnallocatedSize: binary.NativeEndian.Uint64(r[16:])})
	})
	return list, err
}

// eachRegion calls with the bytes of each region. A reply that is shorter than it says is no reply.
func eachRegion(reply []byte, head, size int, do func(region []byte)) error {
	if len(reply) < head {
		return fmt.Errorf("the driver answered %d bytes", len(reply))
	}
	count := int(binary.NativeEndian.Uint32(reply))
	if count > (len(reply)-head)/size {
		return fmt.Errorf("the driver answered %d bytes for %d regions", len(reply), count)
	}
	for i := range count {
		do(reply[head+i*size : head+(i+1)*size])
	}
	return nil
}

// regions is what a driver says of a card's memory.
type regions struct {
	known       bool // it answered
	ownMemory   bool // there is memory of the card's own
	total, free hwprobe.Bytes
}

// askRegions asks a card's driver, unless the card sleeps.
func askRegions(ctx context.Context, calls source.Caller, c drm.Card) (regions, error) {
	if c.Asleep || c.RenderNode == "" {
		return regions{}, nil
	}
	switch c.Driver {
	case "xe":
		list, err := source.Ask[[]XeRegion](ctx, calls, CallXeRegions, c.RenderNode, c.PCI)
		return sumXe(list), err
	case "i915":
		list, err := source.Ask[[]I915Region](ctx, calls, CallI915Regions, c.RenderNode, c.PCI)
		return sumI915(list), err
	}
	return regions{}, fmt.Errorf("the driver %q: %w", c.Driver, fs.ErrNotExist)
}

// sumXe adds the regions of a card's tiles up. No memory is ever wholly unused, because the driver itself needs some, so
// that "nothing is used" is the kernel's answer to one without rights.
func sumXe(list []XeRegion) regions {
	s := regions{known: len(list) > 0}
	for _, r := range list {
		if r.Class == classDevice {
			s.add(r.TotalSize, r.TotalSize-min(r.Used, r.TotalSize), r.Used > 0)
		}
	}
	return s
}

// sumI915 does likewise: "all is unallocated" is the kernel's answer to one without rights.
func sumI915(list []I915Region) regions {
	s := regions{known: len(list) > 0}
	for _, r := range list {
		if r.Class != classDevice {
			continue
		}
		if r.ProbedSize == math.MaxUint64 {
			r.ProbedSize = 0
		}
		s.add(r.ProbedSize, min(r.UnallocatedSize, r.ProbedSize), r.UnallocatedSize < r.ProbedSize)
	}
	return s
}

// add adds one region of the card's own. A total or a free that is unknown of one is unknown of all.
func (s *regions) add(total, free uint64, freeKnown bool) {
	first := !s.ownMemory
	s.ownMemory = true
	one, left := hwprobe.Bytes{}, hwprobe.Bytes{}
	if total > 0 {
		one = hwprobe.Known(total)
	}
	if total > 0 && freeKnown {
		left = hwprobe.Known(free)
	}
	if first {
		s.total, s.free = one, left
		return
	}
	if s.total, s.free = hwprobe.Sum(s.total, one), hwprobe.Sum(s.free, left); s.total == (hwprobe.Bytes{}) {
		s.free = hwprobe.Bytes{}
	}
}

// The bits of CAP_SYS_ADMIN and CAP_PERFMON in the kernel's include/uapi/linux/capability.h.
const accountingRights = 1<<21 | 1<<38

// mayAccount says whether this process has one of the rights with which the drivers tell what is used. In a user namespace
// it may seem so and not be.
func mayAccount(root fs.FS) bool {
	rights, err := strconv.ParseUint(source.FieldOf(statusFields(root), "CapEff"), 16, 64)
	return err == nil && rights&accountingRights != 0
}
