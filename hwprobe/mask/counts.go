package mask

// Count is how many different secrets of one sort were masked.
type Count struct {
	Sort string `json:"sort"` // for people, in the singular: "host name"
	N    int    `json:"n"`
}

// sorts names the kinds for people, in the order of Counts.
var sorts = []struct {
	kind kind
	name string
}{{kindHost, "host name"}, {kindUser, "user name"}, {kindUUID, "UUID"}, {kindSerial, "serial number"}, {kindMAC, "network card address"},
	{kindIPv4, "IPv4 address"}, {kindIPv6, "IPv6 address"}, {kindProcess, "process name"}}

// see notes that a secret stood in a text, by its mask.
func (m *Mask) see(k kind, mask string) string {
	if m.seen == nil {
		m.seen = map[string]kind{}
	}
	m.seen[mask] = k
	return mask
}

// Counts says what was masked in all texts so far; sorts of which there was nothing are left out.
func (m *Mask) Counts() []Count {
	n := map[kind]int{}
	for _, k := range m.seen {
		n[k]++
	}
	var counts []Count
	for _, s := range sorts {
		if n[s.kind] > 0 {
			counts = append(counts, Count{Sort: s.name, N: n[s.kind]})
		}
	}
	return counts
}
