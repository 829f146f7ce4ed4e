package apple

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// accelerator is a GPU as the kernel's I/O registry has it: its use by all processes, which Metal does not tell.
type accelerator struct {
	registry    uint64 // its id, the same that Metal gives; 0 when not told
	model       string
	cores       hwprobe.Bytes
	inUse       hwprobe.Bytes // main memory that it has in use
	utilisation hwprobe.Number
}

// accelerators asks ioreg, which takes some 20 ms and needs no rights.
func accelerators(ctx context.Context, run source.Runner) []accelerator {
	out, err := run.Run(ctx, "ioreg", "-r", "-d", "1", "-w", "0", "-c", "IOAccelerator")
	if err != nil {
		return nil // what only ioreg tells is unknown; freeOf has another way
	}
	return parseRegistry(string(out.Stdout))
}

var (
	entryLine    = regexp.MustCompile(`^[\s|]*\+-o\s`)
	entryID      = regexp.MustCompile(`[<,]\s*id 0x([0-9a-fA-F]{1,16})[,>]`)
	propertyLine = regexp.MustCompile(`^[\s|]*"([^"]+)" = (.*)$`)
	inUsePair    = regexp.MustCompile(`"In use system memory"=(\d+)[,}]`) // not "In use system memory (driver)"
	busyPair     = regexp.MustCompile(`"Device Utilization %"=(\d+)[,}]`)
)

// parseRegistry reads ioreg's text: a line such as "+-o AGXAcceleratorG16G  <class AGXAcceleratorG16G, id 0x10000050b, …>"
// begins an entry, and lines such as `"model" = "Apple M4"` are its properties.
func parseRegistry(text string) []accelerator {
	var found []accelerator
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if entryLine.MatchString(line) {
			found = append(found, accelerator{registry: registryID(line)})
			continue
		}
		property := propertyLine.FindStringSubmatch(line)
		if property == nil || len(found) == 0 {
			continue
		}
		a := &found[len(found)-1]
		switch key, value := property[1], property[2]; key {
		case "model": // a string, or bytes of one: <"Apple M1">
			a.model = strings.Trim(value, `"<> `)
		case "gpu-core-count":
			a.cores = source.ParseUint(value)
		case "PerformanceStatistics":
			a.inUse = source.ParseUint(pair(inUsePair, value))
			a.utilisation = percent(source.ParseNumber(pair(busyPair, value)))
		}
	}
	return found
}

func registryID(line string) uint64 {
	id, err := strconv.ParseUint(pair(entryID, line), 16, 64)
	if err != nil {
		return 0
	}
	return id
}

// pair is the first group of the first match; empty when there is none.
func pair(pattern *regexp.Regexp, text string) string {
	if match := pattern.FindStringSubmatch(text); match != nil {
		return match[1]
	}
	return ""
}

func percent(n hwprobe.Number) hwprobe.Number {
	if n.Or(-1) < 0 || n.Or(0) > 100 {
		return hwprobe.Number{}
	}
	return n
}

// namedByRegistry lists the GPUs that the registry names, which it does on Apple silicon only.
func namedByRegistry(found []accelerator) []gpu {
	var gpus []gpu
	for _, a := range found {
		if vendorOf(a.model) == hwprobe.Apple {
			gpus = append(gpus, gpu{name: a.model, vendor: hwprobe.Apple, registry: a.registry, unified: hwprobe.Known(true)})
		}
	}
	return gpus
}
