//go:build !darwin

package apple

import "github.com/loopkeeper/loopkeeper/hwprobe/source"

// Calls is empty: this system has neither Metal nor its settings.
func Calls() source.Calls { return nil }
