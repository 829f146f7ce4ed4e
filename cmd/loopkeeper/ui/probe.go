package ui

import (
	"fmt"
	"strings"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

// Probe is what a machine has, with the source of each number.
func Probe(s Style, r hwprobe.Report) string {
	var b strings.Builder
	h := r.Host
	fmt.Fprintf(&b, "%s  %s/%s  %s  %d cores\n", Line(h.Hostname), h.OS, h.Arch, Line(orUnknown(h.CPU)), h.Cores)
	if len(r.Devices) == 0 {
		b.WriteString("No accelerator found: models run on the processor.\n")
	} else {
		b.WriteString(devices(r.Devices))
	}
	t := Table{Columns: Columns("POOL", "KIND", ">TOTAL, GiB", ">FREE, GiB", "SOURCE")}
	for _, p := range r.Pools {
		t.Add(p.ID, string(p.Kind), gibOr(p.TotalBytes), gibOr(p.FreeBytes), orUnknown(string(p.FreeSource)))
	}
	b.WriteString(t.String())
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "%s %s: %s\n", s.bad(), w.Code, Line(w.Message))
		if w.Next != "" {
			fmt.Fprintf(&b, "  Next: %s\n", Line(w.Next))
		}
	}
	return b.String()
}

func devices(all []hwprobe.Device) string {
	t := Table{Columns: Columns("DEVICE", "NAME", "STATE", "POOL", ">BUSY", ">TEMP, C", "DRIVER")}
	for _, d := range all {
		busy, temperature := "?", "?"
		if v, ok := d.Utilisation.Value(); ok {
			busy = fmt.Sprintf("%.0f %%", v)
		}
		if v, ok := d.Temperature.Value(); ok {
			temperature = fmt.Sprintf("%.0f", v)
		}
		t.Add(d.ID, Line(d.Name), string(d.State), d.Pool, busy, temperature, orUnknown(d.Driver))
	}
	return t.String()
}

func gibOr(b hwprobe.Bytes) string {
	if v, ok := b.Value(); ok {
		return GiB(v)
	}
	return "?"
}

func orUnknown(s string) string {
	if s == "" {
		return "?"
	}
	return s
}
