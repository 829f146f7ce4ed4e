package intel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/loopkeeper/loopkeeper/hwprobe/drm"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// Calls answers CallXeRegions and CallI915Regions on the real machine.
func Calls() source.Calls {
	return source.Calls{
		CallXeRegions: func(_ context.Context, args ...string) (any, error) {
			return ask("xe", queryXe, decodeXe, args)
		},
		CallI915Regions: func(_ context.Context, args ...string) (any, error) {
			return ask("i915", queryI915, decodeI915, args)
		},
	}
}

func ask[R any](driver string, query func(drm.Put) ([]byte, error), decode func([]byte) ([]R, error), args []string) (any, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("no render node named: %w", fs.ErrNotExist)
	}
	var list []R
	err := drm.Ask(args[0], driver, func(put drm.Put) error {
		reply, err := query(put)
		if err != nil {
			return fmt.Errorf("ask for memory regions: %w", err)
		}
		list, err = decode(reply)
		return err
	})
	return list, err
}

// replyLimit is in bytes; a region takes 88 of them, and a card has a handful.
const replyLimit = 1 << 16

var errReply = errors.New("the driver names an impossible size of its answer")

// xeQuery is struct drm_xe_device_query of the kernel's include/uapi/drm/xe_drm.h.
type xeQuery struct {
	extensions  uint64
	query, size uint32
	data        uint64
	_           [2]uint64
}

// xeQueryMemRegions is DRM_XE_DEVICE_QUERY_MEM_REGIONS.
const xeQueryMemRegions = 1

// requestXe is DRM_IOCTL_XE_DEVICE_QUERY: DRM_IOWR(DRM_COMMAND_BASE + 0x00, struct drm_xe_device_query).
var requestXe = drm.Request(drm.ReadWrite, drm.CommandBase+0x00, unsafe.Sizeof(xeQuery{}))

// queryXe asks twice: first how long the answer is, then for the answer.
func queryXe(put drm.Put) ([]byte, error) {
	q := xeQuery{query: xeQueryMemRegions}
	if err := put(requestXe, unsafe.Pointer(&q)); err != nil {
		return nil, err
	}
	if q.size < xeHead || q.size > replyLimit {
		return nil, errReply
	}
	reply := make([]byte, q.size)
	var pins runtime.Pinner
	defer pins.Unpin()
	pins.Pin(&reply[0])
	q.data = uint64(uintptr(unsafe.Pointer(&reply[0])))
	if err := put(requestXe, unsafe.Pointer(&q)); err != nil {
		return nil, err
	}
	return reply, nil
}

// i915Query and i915QueryItem are struct drm_i915_query and drm_i915_query_item of the kernel's include/uapi/drm/i915_drm.h.
type i915Query struct {
	items, flags uint32
	itemsPointer uint64
}

type i915QueryItem struct {
	query  uint64
	length int32 // of the answer in bytes; negative: an error number
	flags  uint32
	data   uint64
}

// i915QueryMemoryRegions is DRM_I915_QUERY_MEMORY_REGIONS.
const i915QueryMemoryRegions = 4

// requestI915 is DRM_IOCTL_I915_QUERY: DRM_IOWR(DRM_COMMAND_BASE + 0x39, struct drm_i915_query).
var requestI915 = drm.Request(drm.ReadWrite, drm.CommandBase+0x39, unsafe.Sizeof(i915Query{}))

// queryI915 asks twice: first how long the answer is, then for the answer.
func queryI915(put drm.Put) ([]byte, error) {
	item := &i915QueryItem{query: i915QueryMemoryRegions}
	var pins runtime.Pinner
	defer pins.Unpin()
	pins.Pin(item)
	q := i915Query{items: 1, itemsPointer: uint64(uintptr(unsafe.Pointer(item)))}
	ask := func() error {
		if err := put(requestI915, unsafe.Pointer(&q)); err != nil {
			return err
		}
		if item.length < 0 {
			return syscall.Errno(-item.length)
		}
		return nil
	}
	if err := ask(); err != nil {
		return nil, err
	}
	if item.length < i915Head || item.length > replyLimit {
		return nil, errReply
	}
	reply := make([]byte, item.length)
	pins.Pin(&reply[0])
	item.data = uint64(uintptr(unsafe.Pointer(&reply[0])))
	if err := ask(); err != nil {
		return nil, err
	}
	return reply, nil
}
