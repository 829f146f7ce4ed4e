//go:build !windows

package windows

import "github.com/loopkeeper/loopkeeper/hwprobe/source"

// Calls is empty: this system has none of Windows' interfaces.
func Calls() source.Calls { return nil }
