package drm

import (
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Ask opens a render node, such as "renderD128", makes sure that this driver answers there, because a number means another
// question to every driver, and calls talk with a way to put questions. The error wraps fs.ErrPermission where this process may not
// open the node, fs.ErrNotExist where there is none. Opening the node wakes a sleeping card. A driver may hang: see
// source.Guard.
func Ask(node, driver string, talk func(Put) error) error {
	if !renderName.MatchString(node) {
		return fmt.Errorf("render node %q: %w", node, fs.ErrNotExist)
	}
	fd, err := unix.Open(path.Join("/dev/dri", node), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", node, err)
	}
	defer unix.Close(fd)
	put := putTo(fd)
	name, err := driverName(put)
	if err != nil {
		return fmt.Errorf("%s: ask the driver's name: %w", node, err)
	}
	if name != driver {
		return fmt.Errorf("%s belongs to the driver %q, not %q: %w", node, name, driver, fs.ErrNotExist)
	}
	if err := talk(put); err != nil {
		return fmt.Errorf("%s: %w", node, err)
	}
	return nil
}

// version is struct drm_version of the kernel's include/uapi/drm/drm.h, on a 64-bit machine.
type version struct {
	major, minor, patch int32
	_                   int32
	nameLen, name       uint64
	dateLen, date       uint64
	descLen, desc       uint64
}

// requestVersion is DRM_IOCTL_VERSION: DRM_IOWR(0x00, struct drm_version).
var requestVersion = Request(ReadWrite, 0x00, unsafe.Sizeof(version{}))

func driverName(put Put) (string, error) {
	name := make([]byte, 32)
	var pins runtime.Pinner
	defer pins.Unpin()
	pins.Pin(&name[0])
	v := version{nameLen: uint64(len(name)), name: uint64(uintptr(unsafe.Pointer(&name[0])))}
	if err := put(requestVersion, unsafe.Pointer(&v)); err != nil {
		return "", err
	}
	return string(name[:min(v.nameLen, uint64(len(name)))]), nil
}

// Put puts one question to a driver: an ioctl with the structure that belongs to the request.
type Put func(request uintptr, argument unsafe.Pointer) error

// putTo puts questions to an open file, again when a signal interrupts one.
func putTo(fd int) Put {
	return func(request uintptr, argument unsafe.Pointer) error {
		for {
			_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument))
			switch errno {
			case 0:
				return nil
			case unix.EINTR:
			default:
				return errno
			}
		}
	}
}
