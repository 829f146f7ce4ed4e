package apple

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"regexp"
	"strings"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

func readProfiler(ctx context.Context, run source.Runner) []gpu {
	out, err := run.Run(ctx, "system_profiler", "SPDisplaysDataType", "-json")
	if err != nil {
		return nil
	}
	return parseProfiler(out.Stdout)
}

// parseProfiler reads system_profiler's JSON by its keys, which are the same in every language, unlike its values. Displays
// are nested in the GPU that they hang on and are no GPUs. Apple silicon has no memory key.
func parseProfiler(text []byte) []gpu {
	var report struct {
		GPUs []map[string]json.RawMessage `json:"SPDisplaysDataType"`
	}
	if json.Unmarshal(text, &report) != nil {
		return nil // no JSON: an old system, or a tool that broke off
	}
	var gpus []gpu
	for _, fields := range report.GPUs {
		value := func(key string) string {
			var s string
			if json.Unmarshal(fields[key], &s) != nil {
				return ""
			}
			return strings.TrimSpace(s)
		}
		g := gpu{name: cmp.Or(value("sppci_model"), value("_name")), cores: source.ParseUint(value("sppci_cores")), from: hwprobe.SourceProfiler}
		if g.name == "" {
			continue
		}
		g.vendor = vendorOf(g.name, value("spdisplays_vendor"))
		_, own := fields["spdisplays_vram"]
		_, shared := fields["spdisplays_vram_shared"]
		switch {
		case g.vendor == hwprobe.Apple:
			g.unified = hwprobe.Known(true)
		case shared && !own:
			g.unified, g.memory = hwprobe.Known(true), parseSize(value("spdisplays_vram_shared"))
		case own && !shared:
			g.unified, g.memory = hwprobe.Known(false), parseSize(value("spdisplays_vram"))
		}
		gpus = append(gpus, g)
	}
	return gpus
}

var sizePattern = regexp.MustCompile(`^(\d{1,12})(?:[.,](\d{1,2}))?\s*([KMGTkmgt])[Bb]?$`)

// sizeUnits: system_profiler's KB is 1024 bytes.
var sizeUnits = map[string]float64{"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

// parseSize reads a size such as "1536 MB" or, where the language has it, "1,5 GB". "1,536 MB" is not read: it is one and a
// half in one language and fifteen hundred in another.
func parseSize(text string) hwprobe.Bytes {
	parts := sizePattern.FindStringSubmatch(strings.TrimSpace(strings.Map(plainSpace, text)))
	if parts == nil {
		return hwprobe.Bytes{}
	}
	number := source.ParseNumber(parts[1] + "." + cmp.Or(parts[2], "0")).Or(0)
	size := number * sizeUnits[strings.ToUpper(parts[3])]
	if size < 1 || size >= math.MaxInt64 {
		return hwprobe.Bytes{}
	}
	return hwprobe.Known(uint64(size))
}

// plainSpace makes the spaces that languages put before a unit, which do not break a line, plain ones.
func plainSpace(r rune) rune {
	if r == '\u00a0' || r == '\u202f' {
		return ' '
	}
	return r
}
