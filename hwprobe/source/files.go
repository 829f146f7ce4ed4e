package source

import (
	"io/fs"
	"math"
	"strconv"
	"strings"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

// ReadText returns a file's text without white space around it; empty when it cannot be read.
func ReadText(root fs.FS, name string) string {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// ReadUint reads a whole number; anything else is unknown.
func ReadUint(root fs.FS, name string) hwprobe.Bytes { return ParseUint(ReadText(root, name)) }

// ReadScaled reads a whole number and divides it, such as millidegrees by 1000.
func ReadScaled(root fs.FS, name string, divisor float64) hwprobe.Number {
	n, err := strconv.ParseInt(ReadText(root, name), 10, 64)
	if err != nil {
		return hwprobe.Number{}
	}
	return hwprobe.Known(float64(n) / divisor)
}

// ParseUint reads a whole number; anything else is unknown.
func ParseUint(text string) hwprobe.Bytes {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return hwprobe.Bytes{}
	}
	return hwprobe.Known(n)
}

// ParseNumber reads a finite number; anything else is unknown.
func ParseNumber(text string) hwprobe.Number {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return hwprobe.Number{}
	}
	return hwprobe.Known(n)
}

// FieldOf returns the value of a "key value" line, as the kernel's properties files have them.
func FieldOf(text, key string) string {
	for line := range strings.Lines(text) {
		if k, v, found := strings.Cut(strings.TrimSpace(line), " "); found && k == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
