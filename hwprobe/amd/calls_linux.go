package amd

import (
	"context"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"github.com/loopkeeper/loopkeeper/hwprobe/drm"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// Calls answers CallFusion on the real machine. What a card is cannot change, so a card is asked once: opening its node
// again and again would keep it from falling asleep.
func Calls() source.Calls {
	var answers sync.Map // by the arguments
	return source.Calls{CallFusion: func(_ context.Context, args ...string) (any, error) {
		if len(args) == 0 {
			return nil, fmt.Errorf("no render node named: %w", fs.ErrNotExist)
		}
		key := strings.Join(args, " ")
		if info, asked := answers.Load(key); asked {
			return info, nil
		}
		reply := make([]byte, infoSize)
		if err := drm.Ask(args[0], "amdgpu", func(put drm.Put) error { return queryDeviceInfo(put, reply) }); err != nil {
			return nil, err
		}
		info, err := decodeDeviceInfo(reply)
		if err != nil {
			return nil, err
		}
		answers.Store(key, info)
		return info, nil
	}}
}

// infoQuery is struct drm_amdgpu_info of the kernel's include/uapi/drm/amdgpu_drm.h.
type infoQuery struct {
	returnPointer uint64
	returnSize    uint32
	query         uint32
	_             [4]uint32 // a union of arguments that this query has none of
}

// queryDevInfo is AMDGPU_INFO_DEV_INFO.
const queryDevInfo = 0x16

// requestInfo is DRM_IOCTL_AMDGPU_INFO: DRM_IOW(DRM_COMMAND_BASE + 0x05, struct drm_amdgpu_info).
var requestInfo = drm.Request(drm.Write, drm.CommandBase+0x05, unsafe.Sizeof(infoQuery{}))

func queryDeviceInfo(put drm.Put, reply []byte) error {
	var pins runtime.Pinner
	defer pins.Unpin()
	pins.Pin(&reply[0])
	q := infoQuery{returnPointer: uint64(uintptr(unsafe.Pointer(&reply[0]))), returnSize: uint32(len(reply)), query: queryDevInfo}
	return put(requestInfo, unsafe.Pointer(&q))
}
