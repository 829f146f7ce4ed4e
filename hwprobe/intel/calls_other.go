//go:build !linux

package intel

import "github.com/loopkeeper/loopkeeper/hwprobe/source"

// Calls is empty: only Linux has render nodes.
func Calls() source.Calls { return source.Calls{} }
