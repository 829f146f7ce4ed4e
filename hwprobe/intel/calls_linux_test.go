package intel

import (
	"bytes"
	"errors"
	"io/fs"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/loopkeeper/loopkeeper/hwprobe/drm"
)

// xeDriver does as xe_drm.h says: of size 0 it tells the size, of the right size it writes the answer.
func xeDriver(answer []byte) drm.Put {
	return func(request uintptr, argument unsafe.Pointer) error {
		q := (*xeQuery)(argument)
		switch {
		case request != requestXe || q.query != 1 || q.extensions != 0:
			return unix.EINVAL
		case q.size == 0:
			q.size = uint32(len(answer))
		case q.size != uint32(len(answer)):
			return unix.EINVAL
		default:
			copy(unsafe.Slice(*(**byte)(unsafe.Pointer(&q.data)), q.size), answer)
		}
		return nil
	}
}

// i915Driver does as i915_drm.h says, and tells an error in the item's length.
func i915Driver(answer []byte) drm.Put {
	return func(request uintptr, argument unsafe.Pointer) error {
		q := (*i915Query)(argument)
		if request != requestI915 || q.items != 1 || q.flags != 0 {
			return unix.EINVAL
		}
		item := *(**i915QueryItem)(unsafe.Pointer(&q.itemsPointer))
		switch {
		case item.query != 4 || item.flags != 0:
			item.length = -int32(unix.EINVAL)
		case item.length == 0:
			item.length = int32(len(answer))
		case item.length < int32(len(answer)):
			item.length = -int32(unix.EINVAL)
		default:
			copy(unsafe.Slice(*(**byte)(unsafe.Pointer(&item.data)), item.length), answer)
		}
		return nil
	}
}

func TestDriversAreAskedTwiceForTheSizeAndTheAnswer(t *testing.T) {
	xe, i915 := xeReply(region{0, 5, 1}, region{1, 7, 2}), i915Reply(region{0, 5, 1}, region{1, 7, 2})
	if got, err := queryXe(xeDriver(xe)); err != nil || !bytes.Equal(got, xe) {
		t.Errorf("xe: %x, %v", got, err)
	}
	if got, err := queryI915(i915Driver(i915)); err != nil || !bytes.Equal(got, i915) {
		t.Errorf("i915: %x, %v", got, err)
	}
}

func TestDriverThatRefusesOrAnswersTooMuchIsAnError(t *testing.T) {
	refuses := func(uintptr, unsafe.Pointer) error { return unix.EACCES }
	unknown := func(_ uintptr, argument unsafe.Pointer) error {
		(*(**i915QueryItem)(unsafe.Pointer(&(*i915Query)(argument).itemsPointer))).length = -int32(unix.ENODEV)
		return nil
	}
	for name, c := range map[string]struct {
		query func(drm.Put) ([]byte, error)
		put   drm.Put
		want  error
	}{
		"xe refuses": {queryXe, refuses, fs.ErrPermission}, "i915 refuses": {queryI915, refuses, fs.ErrPermission},
		"i915 before Linux 5.14": {queryI915, unknown, unix.ENODEV},
		"xe of 64 KiB":           {queryXe, xeDriver(make([]byte, replyLimit+1)), errReply}, "xe of nothing": {queryXe, xeDriver(nil), errReply},
		"i915 of 64 KiB": {queryI915, i915Driver(make([]byte, replyLimit+1)), errReply}, "i915 of nothing": {queryI915, i915Driver(nil), errReply},
	} {
		if reply, err := c.query(c.put); !errors.Is(err, c.want) || reply != nil {
			t.Errorf("%s: %d bytes, %v; want %v", name, len(reply), err, c.want)
		}
	}
}

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
