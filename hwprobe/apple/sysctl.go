package apple

import (
	"encoding/binary"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

// integer is the number that a sysctl's bytes are. Some are 32 bits wide and some 64, and that differs between releases.
func integer(raw []byte) hwprobe.Bytes {
	switch len(raw) {
	case 4:
		return hwprobe.Known(uint64(binary.LittleEndian.Uint32(raw)))
	case 8:
		return hwprobe.Known(binary.LittleEndian.Uint64(raw))
	}
	return hwprobe.Bytes{}
}
