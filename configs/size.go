package configs

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is an amount of memory in bytes, written as people do: "24 GiB", "512MiB", or a number of bytes. As GB means one thing to
// those who sell disks and another to those who sell memory, it is refused.
type Size uint64

// sizeForm is what the text of a Size may be.
const sizeForm = "a size such as 24 GiB or 512 MiB, or bytes"

var units = map[string]float64{"": 1, "B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}

// ParseSize reads a Size.
func ParseSize(text string) (Size, error) {
	text = strings.TrimSpace(text)
	digits := strings.TrimLeft(text, "0123456789._")
	number, unit := text[:len(text)-len(digits)], strings.ToUpper(strings.TrimSpace(digits))
	n, err := strconv.ParseFloat(strings.ReplaceAll(number, "_", ""), 64)
	scale, known := units[unit]
	if err != nil || !known || n*scale > math.MaxInt64 {
		return 0, fmt.Errorf("want %s, got %q", sizeForm, text)
	}
	return Size(n * scale), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Size) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSize(string(text))
	return err
}

// UnmarshalYAML takes a number as well as a text.
func (s *Size) UnmarshalYAML(raw []byte) error {
	return s.UnmarshalText([]byte(strings.Trim(strings.TrimSpace(string(raw)), `"'`)))
}

// String writes the size in the largest unit of which it has a whole number.
func (s Size) String() string {
	for i, unit := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if scale := Size(1) << (40 - 10*i); s >= scale && s%scale == 0 {
			return fmt.Sprintf("%d %s", s/scale, unit)
		}
	}
	return strconv.FormatUint(uint64(s), 10)
}

// Set and Type make a Size the value of a flag.
func (s *Size) Set(text string) error { return s.UnmarshalText([]byte(text)) }

// Type is what help calls a Size.
func (*Size) Type() string { return "size" }
