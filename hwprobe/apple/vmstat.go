package apple

import (
	"context"
	"regexp"
	"strings"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// vmPages is what the kernel's pages come to, in bytes.
type vmPages struct {
	available hwprobe.Bytes // free, inactive and speculative: what can be had without swapping
	wired     hwprobe.Bytes // cannot be swapped; what GPUs use is part of it
}

func readPages(ctx context.Context, run source.Runner) vmPages {
	out, err := run.Run(ctx, "vm_stat")
	if err != nil {
		return vmPages{} // the host's available memory stands in, which is less by the speculative pages
	}
	return parsePages(string(out.Stdout))
}

var pageSize = regexp.MustCompile(`\(page size of (\d+) bytes\)`)

// parsePages reads vm_stat's text. "Pages free" does not count the speculative ones: vm_stat takes them off what the kernel
// calls free.
func parsePages(text string) vmPages {
	size := source.ParseUint(pair(pageSize, text))
	read := func(name string) hwprobe.Bytes {
		for line := range strings.Lines(text) {
			if key, value, found := strings.Cut(line, ":"); found && key == name {
				return times(source.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), ".")), size)
			}
		}
		return hwprobe.Bytes{}
	}
	return vmPages{
		available: hwprobe.Sum(hwprobe.Sum(read("Pages free"), read("Pages inactive")), read("Pages speculative")),
		wired:     read("Pages wired down"),
	}
}

// times is count pages of size bytes; unknown when either is or when no 64-bit number holds it.
func times(count, size hwprobe.Bytes) hwprobe.Bytes {
	c, knowsCount := count.Value()
	s, knowsSize := size.Value()
	if !knowsCount || !knowsSize || s == 0 || c*s/s != c {
		return hwprobe.Bytes{}
	}
	return hwprobe.Known(c * s)
}
