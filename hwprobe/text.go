package hwprobe

import (
	"slices"
	"strings"
	"unicode"
)

// mostText is how long a text of a report may be, in characters. Names have some dozens, messages quote 200 of a tool's.
const mostText = 1000

// Line is a text as it can be shown on one line: devices, tools and people's files say anything, and what a terminal would take
// for a command must not reach one. White space becomes spaces, what cannot be printed or is no UTF-8 the replacement character.
func Line(text string) string {
	text = strings.TrimSpace(strings.ToValidUTF8(text, string(unicode.ReplacementChar)))
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, text)
	if characters := []rune(text); len(characters) > mostText {
		text = string(characters[:mostText]) + "…"
	}
	return text
}

// Clean returns the report with every text that comes from the machine as a Line, and readings that no device can have unknown:
// what a bus reads from a device that is not there any more is all ones. Ids stay consistent, because the same text is the same
// Line.
func (r Report) Clean() Report {
	clean := func(texts ...*string) {
		for _, text := range texts {
			*text = Line(*text)
		}
	}
	clean(&r.Host.Hostname, &r.Host.OS, &r.Host.Arch, &r.Host.Kernel, &r.Host.CPU)
	r.Devices, r.Hidden = slices.Clone(r.Devices), slices.Clone(r.Hidden)
	for _, devices := range [][]Device{r.Devices, r.Hidden} {
		for i := range devices {
			d := &devices[i]
			clean(&d.ID, &d.Name, &d.PCI, &d.LUID, &d.UUID, &d.Partition, &d.Driver, &d.Pool)
			d.Utilisation = within(d.Utilisation, 0, 100)
			d.Temperature = within(d.Temperature, absoluteZero, meltingPoint)
			d.Power = within(d.Power, 0, mostPower)
		}
	}
	r.Pools, r.Warnings = slices.Clone(r.Pools), slices.Clone(r.Warnings)
	for i := range r.Pools {
		clean(&r.Pools[i].ID)
	}
	for i := range r.Warnings {
		w := &r.Warnings[i]
		clean(&w.Device, &w.Message, &w.Next)
	}
	return r
}

const (
	absoluteZero = -273.15 // degrees Celsius
	meltingPoint = 1414    // degrees Celsius, of silicon
	mostPower    = 1e5     // watts: a whole rack of GB200 takes 1.2e5
)

// within is the number if it lies within the limits, else unknown.
func within(n Number, least, most float64) Number {
	if v, known := n.Value(); !known || v < least || v > most {
		return Number{}
	}
	return n
}
