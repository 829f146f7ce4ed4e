package intel

import (
	"errors"
	"io/fs"
	"testing"
	"unsafe"
)

func TestQuestionsHaveTheKernelsLayout(t *testing.T) {
	if size := unsafe.Sizeof(xeQuery{}); size != 40 || requestXe != 3223872576 {
		t.Errorf("struct drm_xe_device_query has %d bytes, request %d", size, requestXe)
	}
	if size, item := unsafe.Sizeof(i915Query{}), unsafe.Sizeof(i915QueryItem{}); size != 16 || item != 24 || requestI915 != 3222299769 {
		t.Errorf("struct drm_i915_query has %d bytes, its item %d, request %d", size, item, requestI915)
	}
}

func TestCallWithoutARenderNodeIsAnError(t *testing.T) {
	for _, call := range []string{CallXeRegions, CallI915Regions} {
		for _, args := range [][]string{nil, {""}, {"card0"}, {"renderD4096", "0000:03:00.0"}} {
			if raw, err := Calls().Call(t.Context(), call, args...); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s %q: %s, %v; want fs.ErrNotExist", call, args, raw, err)
			}
		}
	}
}
