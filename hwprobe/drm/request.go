package drm

// The direction of a request, as the kernel's _IOC_WRITE and _IOC_READ name it from the program's side.
const (
	Write     = 1 // the program gives the driver a structure
	ReadWrite = 3 // and the driver writes into it
)

// CommandBase is where a driver's own requests begin (DRM_COMMAND_BASE).
const CommandBase = 0x40

// Request is the number of an ioctl of DRM's type 'd' with a structure of size bytes: _IOC of the kernel's
// include/uapi/asm-generic/ioctl.h, as amd64 and arm64 use it.
func Request(direction, number, size uintptr) uintptr {
	return direction<<30 | size<<16 | 'd'<<8 | number
}
