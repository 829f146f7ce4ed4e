package hwprobe

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var pciPattern = regexp.MustCompile(`^([0-9a-fA-F]{1,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\.([0-7])$`)

// PCIAddress normalises a PCI address to the kernel's form: lower case, a domain of at least four digits, such as
// "0000:0c:00.0" for "00000000:0C:00.0". ok is false when the text is no PCI address.
func PCIAddress(text string) (address string, ok bool) {
	parts := pciPattern.FindStringSubmatch(strings.TrimSpace(text))
	if parts == nil {
		return "", false
	}
	domain, err := strconv.ParseUint(parts[1], 16, 32)
	if err != nil {
		return "", false
	}
	return fmt.Sprintf("%04x:%s:%s.%s", domain, strings.ToLower(parts[2]), strings.ToLower(parts[3]), parts[4]), true
}

// LUID spells a Windows adapter's locally unique id as the performance counters do, in lower case: "0x00000000_0x0000d4a3".
func LUID(high int32, low uint32) string { return fmt.Sprintf("0x%08x_0x%08x", uint32(high), low) }
