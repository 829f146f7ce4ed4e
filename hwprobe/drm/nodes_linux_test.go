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
		err := Ask(node, "amdgpu", func(Put) error { t.Errorf("%q was opened", node); return nil })
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
	if name, err := driverName(putTo(int(null.Fd()))); !errors.Is(err, unix.ENOTTY) || name != "" {
		t.Errorf("%q, %v; want ENOTTY", name, err)
	}
}

// The kernel writes as much of its name as fits, and says how long the whole is.
func TestDriversNameIsAsLongAsTheDriverSays(t *testing.T) {
	for answer, want := range map[string]string{"xe": "xe", "amdgpu": "amdgpu", "a driver whose name is longer than any that there is": "a driver whose name is longer th"} {
		name, err := driverName(func(request uintptr, argument unsafe.Pointer) error {
			v := (*version)(argument)
			if request != requestVersion || v.nameLen != 32 {
				t.Errorf("request %#x for %d bytes", request, v.nameLen)
			}
			copy(unsafe.Slice(*(**byte)(unsafe.Pointer(&v.name)), v.nameLen), answer)
			v.nameLen = uint64(len(answer))
			return nil
		})
		if err != nil || name != want {
			t.Errorf("%q, %v; want %q", name, err, want)
		}
	}
}
