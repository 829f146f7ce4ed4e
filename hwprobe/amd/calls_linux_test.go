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

func TestCallWithoutARenderNodeIsAnError(t *testing.T) {
	for _, args := range [][]string{nil, {""}, {"card0"}, {"renderD4096", "0000:03:00.0", "1002:744c"}} {
		if raw, err := Calls().Call(t.Context(), CallFusion, args...); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %s, %v; want fs.ErrNotExist", args, raw, err)
		}
	}
}
