package nvidia

import (
	"context"
	"slices"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// finder collects the findings of one probe.
type finder struct {
	machine source.Machine
	tool    *tool
	found   hwprobe.Findings
}

// Probe asks nvidia-smi, and looks at what the kernel shows: for cards that nvidia-smi does not answer for, so that a broken
// driver is never taken for a machine without a GPU, for cards that it would wake, and for Jetsons, which may not have it.
func Probe(ctx context.Context, m source.Machine, _ hwprobe.Host) hwprobe.Findings {
	f := &finder{machine: m, tool: newTool(m)}
	all := cards(m.Files)
	awake := f.addIdle(all)
	if len(all) > 0 && len(awake) == 0 {
		return f.found
	}
	r := f.ask(ctx, awake, len(awake) < len(all))
	silent := slices.DeleteFunc(awake, func(c card) bool { return f.answered(r, c) })
	f.addJetson(ctx)
	f.addFailures(r, silent)
	return f.found
}

// ask asks nvidia-smi about the cards, about all that it knows unless there are others to leave alone, and adds their devices.
func (f *finder) ask(ctx context.Context, awake []card, some bool) reply {
	var only []string
	if some {
		only = addressesOf(awake)
	}
	r := f.tool.query(ctx, only)
	if others := f.unheard(r, awake); len(others) > 0 {
		again := f.tool.query(ctx, others)
		r.rows = append(r.rows, again.rows...)
	}
	var told []gpu
	switch need := f.incomplete(r.rows); {
	case len(r.rows) == 0 && r.err == nil && classify(r.said, r.code) == other: // not understood at all
		told, _ = f.tool.details(ctx, only) // what went wrong is in the first reply
		for _, g := range told {
			r.rows = append(r.rows, g.row)
		}
	case len(need) > 0:
		var err error
		if told, err = f.tool.details(ctx, addressesOfRows(need, only)); err != nil { // what it does not tell stays unknown
			cause := classifyError(err)
			f.found.Warn(cause.code, "", "nvidia-smi -q -x: "+err.Error(), cause.next)
		}
	}
	f.addRows(ctx, r.rows, told)
	return r
}

// addRows adds the devices, completed by what the XML told of them.
func (f *finder) addRows(ctx context.Context, rows []row, told []gpu) {
	var list []listed
	if slices.ContainsFunc(rows, partitioned) || slices.ContainsFunc(told, func(g gpu) bool { return len(g.instances) > 0 }) {
		list = f.tool.list(ctx)
	}
	for i, r := range rows {
		var parts []instance
		k := slices.IndexFunc(told, r.same)
		if k >= 0 {
			r, parts = r.completed(told[k].row), told[k].instances
		}
		f.addRow(i, r, named(parts, r.text("uuid"), list), k >= 0)
	}
}

// same says whether both are one device: by PCI address, else by UUID, never by position.
func (r row) same(g gpu) bool {
	if a, b := r.address(), g.address(); a != "" && b != "" {
		return a == b
	}
	return r.text("uuid") != "" && r.text("uuid") == g.text("uuid")
}

// incomplete returns the rows that need the XML: those of split cards, and those without a memory, unless that is because
// the device has none of its own or does not answer at all.
func (f *finder) incomplete(rows []row) []row {
	var need []row
	for _, r := range rows {
		total, _ := r.memory()
		if partitioned(r) || total == (hwprobe.Bytes{}) && !unified(r, f.machine.Arch).Or(false) && !r.says("gpuislost") {
			need = append(need, r)
		}
	}
	return need
}

// unheard returns the addresses of cards that an older nvidia-smi left out because it gave up at a bad one.
func (f *finder) unheard(r reply, awake []card) []string {
	bad := addresses(r.said)
	if r.err != nil || len(bad) == 0 {
		return nil
	}
	return addressesOf(slices.DeleteFunc(slices.Clone(awake), func(c card) bool {
		return slices.Contains(bad, c.pci) || slices.ContainsFunc(r.rows, func(r row) bool { return r.address() == c.pci })
	}))
}

// answered says whether nvidia-smi tells of the card, as one device or as several.
func (f *finder) answered(r reply, c card) bool {
	return slices.ContainsFunc(r.rows, func(r row) bool { return c.pci != "" && r.address() == c.pci })
}

func addressesOf(some []card) []string {
	var list []string
	for _, c := range some {
		if c.pci != "" {
			list = append(list, c.pci)
		}
	}
	return list
}

// addressesOfRows returns the rows' addresses, or otherwise where one of them has none.
func addressesOfRows(rows []row, otherwise []string) []string {
	var list []string
	for _, r := range rows {
		if r.address() == "" {
			return otherwise
		}
		list = append(list, r.address())
	}
	return list
}
