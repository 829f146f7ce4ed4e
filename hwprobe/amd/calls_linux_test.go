package amd

import (
	"errors"
	"io/fs"
	"testing"
	"unsafe"
)

func TestQuestionHasTheKernelsLayout(t *testing.T) {
	if size := unsafe.Sizeof(infoQuery{}); size != 32 || requestInfo != 0x40206445 {
		t.Errorf("struct drm_amdgpu_info has %d bytes, request %#x", size, requestInfo)
	}
}

// A driver that does as the header says: it copies as much of its structure as was asked for.
func TestDriverIsAskedForWhatTheDecoderReads(t *testing.T) {
	reply := make([]byte, infoSize)
	err := queryDeviceInfo(func(request uintptr, argument unsafe.Pointer) error {
		q := (*infoQuery)(argument)
		if request != requestInfo || q.query != 0x16 || q.returnSize != infoSize {
			t.Errorf("request %#x, %+v", request, q)
		}
		copy(unsafe.Slice(*(**byte)(unsafe.Pointer(&q.returnPointer)), q.returnSize), deviceInfo(0x1586, 0x1))
		return nil
	}, reply)
	if info, decodeErr := decodeDeviceInfo(reply); err != nil || decodeErr != nil || info != (DeviceInfo{DeviceID: 0x1586, IDsFlags: 1}) {
		t.Errorf("%+v, %v, %v", info, err, decodeErr)
	}
}

func TestCallWithoutARenderNodeIsAnError(t *testing.T) {
	for _, args := range [][]string{nil, {""}, {"card0"}, {"renderD4096", "0000:03:00.0", "1002:744c"}} {
		if raw, err := Calls().Call(t.Context(), CallFusion, args...); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %s, %v; want fs.ErrNotExist", args, raw, err)
		}
	}
}
