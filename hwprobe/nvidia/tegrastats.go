package nvidia

import (
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// readings are what changes about a device from moment to moment.
type readings struct {
	utilisation, temperature, power hwprobe.Number
}

// completed returns the readings with the other ones in place of unknown ones.
func (r readings) completed(by readings) readings {
	either := func(a, b hwprobe.Number) hwprobe.Number {
		if a == (hwprobe.Number{}) {
			return b
		}
		return a
	}
	return readings{either(r.utilisation, by.utilisation), either(r.temperature, by.temperature), either(r.power, by.power)}
}

// tegrastatsTime is how long tegrastats runs: it prints a line per interval and never ends by itself.
const tegrastatsTime = time.Second

// runTegrastats returns the first line of tegrastats' stream, empty when there is none.
func runTegrastats(ctx context.Context, runner source.Runner) string {
	ctx, cancel := context.WithTimeout(ctx, tegrastatsTime)
	defer cancel()
	out, _ := runner.Run(ctx, "tegrastats", "--interval", "100") // that it is ended by the deadline is no error
	line, _, complete := strings.Cut(string(out.Stdout), "\n")
	if !complete {
		return ""
	}
	return line
}

var (
	tegraBusy  = regexp.MustCompile(`(?:^|\s)GR3D_FREQ (\d+)%`)
	tegraHeat  = regexp.MustCompile(`(?:^|\s)(?i:gpu)@(-?[\d.]+)C`)
	tegraDie   = regexp.MustCompile(`(?:^|\s)(?i:tj)@(-?[\d.]+)C`)
	tegraPower = regexp.MustCompile(`(?:^|\s)(?:VDD_IN|POM_5V_IN) (\d+)(?:mW)?/`)
)

// parseTegrastats reads one line of tegrastats. The temperature is the GPU's sensor's, else the whole chip's; a sensor whose
// part is switched off shows -256 C. The power is the whole module's, as a card's is the whole board's.
func parseTegrastats(line string) readings {
	field := func(pattern *regexp.Regexp, least, most float64) hwprobe.Number {
		match := pattern.FindStringSubmatch(line)
		if match == nil {
			return hwprobe.Number{}
		}
		return row{cells: map[string]string{"": match[1]}}.number("", least, most)
	}
	const switchedOff = -200 // colder than any part that works
	r := readings{utilisation: field(tegraBusy, 0, 100), temperature: field(tegraHeat, switchedOff, 1e3)}
	r = r.completed(readings{temperature: field(tegraDie, switchedOff, 1e3)})
	if milliwatts, known := field(tegraPower, 0, 1e9).Value(); known {
		r.power = hwprobe.Known(milliwatts / 1e3)
	}
	return r
}
