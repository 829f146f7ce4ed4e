package ollama

import (
	"strconv"
	"strings"
)

// LeavesIntegratedOut says whether an Ollama of that version leaves graphics that are a part of the processor out unless
// OLLAMA_IGPU_ENABLE=1 is set for it: 0.30 and newer. A version that cannot be read does not say so.
func LeavesIntegratedOut(version string) bool {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, err := strconv.Atoi(major)
	b, errMinor := strconv.Atoi(minor)
	return err == nil && errMinor == nil && (a > 0 || b >= 30)
}
