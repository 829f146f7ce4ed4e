package drm

import (
	"errors"
	"io/fs"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestOnlyRenderNodesAreOpened(t *testing.T) {
	for _, node := range []string{"", "card0", "../null", "renderD", "renderD128/../../null", "renderD4096"} {
		err := Ask(node, "amdgpu", func(int) error { t.Errorf("%q was opened", node); return nil })
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v, want fs.ErrNotExist", node, err)
		}
	}
}

func TestQuestionToWhatIsNoDriverIsAnError(t *testing.T) {
	if size := unsafe.Sizeof(version{}); size != 64 {
		t.Errorf("struct drm_version has %d bytes, the kernel's 64", size)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if name, err := driverName(int(null.Fd())); !errors.Is(err, unix.ENOTTY) || name != "" {
		t.Errorf("%q, %v; want ENOTTY", name, err)
	}
}
