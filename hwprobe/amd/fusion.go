package amd

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/drm"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// CallFusion is the name of the call that asks the amdgpu driver what a card is. Its arguments are the render node and the
// PCI address and id of the card that the node belongs to; it answers with a DeviceInfo.
const CallFusion = "drm-amdgpu-fusion"

// DeviceInfo is the part of the amdgpu driver's account of a card that tells an APU.
type DeviceInfo struct {
	DeviceID uint32 `json:"device_id"` // PCI device
	IDsFlags uint64 `json:"ids_flags"` // AMDGPU_IDS_FLAGS_*
}

// flagFusion is AMDGPU_IDS_FLAGS_FUSION of the kernel's include/uapi/drm/amdgpu_drm.h: "integrated (a.k.a. fusion) GPU".
const flagFusion = 0x1

// The places of the fields in struct drm_amdgpu_info_device of the same file. The kernel writes as much of the structure
// as is asked for, so that what follows need not be known.
const (
	offsetDeviceID = 0
	offsetIDsFlags = 136
	infoSize       = 144
)

func decodeDeviceInfo(reply []byte) (DeviceInfo, error) {
	if len(reply) < infoSize {
		return DeviceInfo{}, fmt.Errorf("the driver answered %d bytes, not %d", len(reply), infoSize)
	}
	return DeviceInfo{
		DeviceID: binary.NativeEndian.Uint32(reply[offsetDeviceID:]),
		IDsFlags: binary.NativeEndian.Uint64(reply[offsetIDsFlags:]),
	}, nil
}

// askFusion asks the driver whether a card is an APU. It asks no sleeping card, which would wake, and believes no answer
// about another device.
func askFusion(ctx context.Context, calls source.Caller, c drm.Card) hwprobe.Flag {
	if c.Driver != "amdgpu" || c.RenderNode == "" || c.Asleep {
		return hwprobe.Flag{}
	}
	info, err := source.Ask[DeviceInfo](ctx, calls, CallFusion, c.RenderNode, c.PCI, c.ID)
	if err != nil || !strings.EqualFold(c.ID, fmt.Sprintf("1002:%04x", info.DeviceID)) {
		return hwprobe.Flag{} // no rights, or another system: the chip's id and the card's signs tell as well
	}
	return hwprobe.Known(info.IDsFlags&flagFusion != 0)
}
