package ui

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

// poolBar is how many cells a pool of memory gets.
const poolBar = 16

// Probe is what a machine has: its devices, the memory that they draw on with the source of each number, and what is wrong.
func Probe(s Style, r hwprobe.Report) string {
	var b strings.Builder
	b.WriteString(hostLine(s, r.Host) + "\n\n")
	if len(r.Devices)+len(r.Hidden) > 0 {
		b.WriteString(devices(s, r) + "\n")
	} else if (hwprobe.Findings{Warnings: r.Warnings}).Failed() {
		b.WriteString(sentence("No accelerator was seen, and there may be one: see the warnings below.", s.Width) + "\n\n")
	} else {
		b.WriteString(sentence("No accelerator found: models run on the processor.", s.Width) + "\n\n")
	}
	b.WriteString(pools(s, r))
	if len(r.Warnings) > 0 {
		b.WriteString("\n")
	}
	for _, w := range r.Warnings {
		about := string(w.Code)
		if w.Device != "" {
			about = w.Device + ", " + about
		}
		b.WriteString(s.Finding(s.bad(), about+": "+w.Message, w.Next))
	}
	return b.String()
}

func hostLine(s Style, h hwprobe.Host) string {
	parts := []string{cmp.Or(Line(h.Hostname), "?"), h.OS + "/" + h.Arch, cmp.Or(Line(h.CPU), "processor unknown")}
	if h.Cores > 0 {
		parts = append(parts, Plural(int64(h.Cores), "core", "cores"))
	}
	if len(parts) > 3 && s.Width > 0 { // the processor's name is what can be shortened
		rest := ansi.StringWidth(parts[0]) + ansi.StringWidth(parts[1]) + ansi.StringWidth(parts[3]) + 6
		parts[2] = Middle(parts[2], max(s.Width-rest, leastCell))
	}
	return strings.Join(parts, "  ")
}

func devices(s Style, r hwprobe.Report) string {
	t := Table{Width: s.Width, Columns: Columns("/DEVICE", "/NAME", "STATE", ">BUSY", ">TEMP", "/POOL")}
	for _, d := range r.Devices {
		t.Add(d.ID, deviceTitle(d), deviceState(s, d), measured(d.Utilisation, "%.0f %%"), measured(d.Temperature, "%.0f C"), poolOfDevice(d))
	}
	for _, d := range r.Hidden {
		t.Add(d.ID, deviceTitle(d), s.paint(dim, "hidden"), "-", "-", "-")
	}
	return t.String()
}

func deviceTitle(d hwprobe.Device) string {
	name := cmp.Or(Line(d.Name), "?")
	if d.Partition != "" && !strings.Contains(name, d.Partition) {
		name += " " + Line(d.Partition)
	}
	return name
}

func deviceState(s Style, d hwprobe.Device) string {
	text := s.State("device_" + string(d.State))
	switch {
	case d.AgeSeconds > 0:
		text += ", seen " + Age(time.Duration(d.AgeSeconds)*time.Second) + " ago"
	case d.Forced:
		text += ", forced"
	}
	return text
}

// poolOfDevice is "own" for a device that is alone on memory of its own.
func poolOfDevice(d hwprobe.Device) string {
	if d.Pool == d.ID {
		return "own"
	}
	return d.Pool
}

func measured(n hwprobe.Number, format string) string {
	if v, ok := n.Value(); ok {
		return fmt.Sprintf(format, v)
	}
	return "?"
}

func pools(s Style, r hwprobe.Report) string {
	t := Table{Width: s.Width, Columns: Columns("/POOL", "KIND", "MEMORY, GiB", ">FREE", ">TOTAL", "~SOURCE")}
	for _, p := range r.Pools {
		t.Add(p.ID, string(p.Kind), poolFill(s, p.TotalBytes, p.FreeBytes), gibOr(p.FreeBytes), gibOr(p.TotalBytes), poolSource(p))
		for _, part := range p.Parts {
			of := "of its own"
			if part.BorrowedOf != "" {
				of = "borrowed of " + part.BorrowedOf
			}
			t.Add("  "+Line(part.Name), "part", poolFill(s, part.TotalBytes, part.FreeBytes), gibOr(part.FreeBytes), gibOr(part.TotalBytes), of)
		}
		if p.ReserveBytes > 0 {
			t.Add("  reserve", "kept", "", "", GiB(p.ReserveBytes), string(hwprobe.SourceOverride))
		}
	}
	return t.String()
}

// poolFill draws what is taken; "?" where that is not known.
func poolFill(s Style, total, free hwprobe.Bytes) string {
	all, knowsTotal := total.Value()
	left, knowsFree := free.Value()
	if !knowsTotal || !knowsFree || all == 0 {
		return "?"
	}
	return s.Bar(poolBar, Part{float64(all-min(left, all)) / float64(all), Foreign})
}

// poolSource says where both numbers come from, and how old the total is when it was not read now.
func poolSource(p hwprobe.Pool) string {
	total := string(p.TotalSource)
	if p.TotalAgeSeconds > 0 {
		total += ", " + Age(time.Duration(p.TotalAgeSeconds)*time.Second) + " ago"
	}
	switch free := string(p.FreeSource); {
	case total == "" && free == "":
		return "?"
	case free == "" || free == total:
		return total
	case total == "":
		return "free " + free
	default:
		return total + ", free " + free
	}
}

func gibOr(b hwprobe.Bytes) string {
	if v, ok := b.Value(); ok {
		return GiB(v)
	}
	return "?"
}
