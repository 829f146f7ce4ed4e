//go:build windows

package windows

import (
	"context"
	"errors"
	"strconv"

	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// Calls answers CallDXGI, CallKernel, CallRegistry and CallCounters on a Windows machine, without cgo.
func Calls() source.Calls {
	return source.Calls{
		CallDXGI:   func(context.Context, ...string) (any, error) { return dxgiAdapters() },
		CallKernel: func(context.Context, ...string) (any, error) { return kernelAdapters() },
		CallRegistry: func(_ context.Context, args ...string) (any, error) {
			if len(args) < 3 {
				return nil, errors.New("the registry is asked with a key, a depth and values")
			}
			depth, err := strconv.Atoi(args[1])
			if err != nil {
				return nil, err
			}
			return registryKeys(args[0], depth, args[2:])
		},
		CallCounters: func(_ context.Context, args ...string) (any, error) { return counterValues(args) },
	}
}
