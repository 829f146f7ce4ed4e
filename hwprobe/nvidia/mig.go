package nvidia

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

// instance is a MIG instance: a part of a card that an engine sees as a device.
type instance struct {
	index       string // among the card's MIG devices; empty where only the list tells of it
	gi, ci      string // ids of its GPU instance and compute instance, empty like the index
	total, free hwprobe.Bytes
	uuid        string // empty where the list does not tell of it, like the profile
	profile     string // "3g.40gb"
}

// listed is a MIG instance as nvidia-smi -L names it.
type listed struct {
	parent, index, uuid, profile string
}

var (
	listedCard     = regexp.MustCompile(`^GPU \d+: .*\(UUID: ([^)\s]+)\)`)
	listedInstance = regexp.MustCompile(`^\s+MIG (\S+)\s+Device\s+(\d+): \(UUID: ([^)\s]+)\)`)
)

// parseList reads the MIG instances of nvidia-smi -L.
func parseList(output string) []listed {
	var found []listed
	parent := ""
	for line := range strings.Lines(output) {
		if card := listedCard.FindStringSubmatch(line); card != nil {
			parent = card[1]
		} else if part := listedInstance.FindStringSubmatch(line); part != nil && parent != "" {
			found = append(found, listed{parent: parent, profile: part[1], index: part[2], uuid: part[3]})
		}
	}
	return found
}

// named gives a card's instances the names of the list, by the index that both have. An instance that only the list tells
// of is one whose memory is unknown.
func named(parts []instance, card string, list []listed) []instance {
	parts = slices.Clone(parts)
	for _, l := range list {
		if card == "" || l.parent != card {
			continue
		}
		i := slices.IndexFunc(parts, func(p instance) bool { return p.index == l.index })
		if i < 0 {
			i = len(parts)
			parts = append(parts, instance{index: l.index})
		}
		parts[i].uuid, parts[i].profile = l.uuid, l.profile
	}
	return parts
}

// addInstances adds a card's MIG instances in place of the card: memory that is in both would be counted twice, and the
// card cannot be used as a whole. Compute instances of one GPU instance share its memory, so only the first is a device.
// The card's temperature is theirs; its power and utilisation are not.
func (f *finder) addInstances(card hwprobe.Device, parts []instance) {
	shared := map[string]bool{} // GPU instances that have a device
	for _, part := range parts {
		if part.gi != "" && shared[part.gi] {
			continue
		}
		shared[part.gi] = true
		d := card
		d.ID = part.id(card)
		d.UUID, d.Partition, d.State, d.Pool = part.uuid, cmp.Or(part.profile, "MIG "+part.gi+"."+part.ci), hwprobe.StateOK, d.ID
		d.Integrated = hwprobe.Known(false)
		d.Utilisation, d.Power = hwprobe.Number{}, hwprobe.Number{}
		p := hwprobe.Pool{ID: d.ID, Kind: hwprobe.PoolOfDevice}
		p.SetTotal(part.total, hwprobe.SourceNVIDIASMI)
		p.SetFree(part.free, hwprobe.SourceNVIDIASMI)
		if part.total == (hwprobe.Bytes{}) {
			d.State = hwprobe.StateDegraded
			f.found.Warn(hwprobe.WarnMemoryUnknown, d.ID, d.Name+": nvidia-smi does not tell the memory of its MIG instance "+d.Partition,
				"run nvidia-smi -q by hand and look at FB Memory Usage of the MIG device")
		}
		f.add(d, p)
	}
}

// id is stable as long as the card is split in the same way.
func (i instance) id(card hwprobe.Device) string {
	if i.gi == "" && i.uuid != "" {
		return "gpu:" + i.uuid
	}
	return fmt.Sprintf("%s/mig%s.%s", card.ID, i.gi, i.ci)
}
