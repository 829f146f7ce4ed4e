// Package discovery is the wire contract of mDNS: the service name, what the TXT record says, and which network
// interfaces are worth asking. A record is a hint; who a worker is, where it is and how it fares comes from gRPC only.
package discovery

import (
	"net"
	"regexp"
	"sort"
	"strings"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// Service is the DNS-SD service type, within the 15 characters of RFC 6763 §7.2.
const Service = "_loopkeeper._tcp"

// Domain is the mDNS domain.
const Domain = "local"

// Record is what a worker announces.
type Record struct {
	NodeID  string   // [a-z0-9-]{1,63}, also the instance name
	Fleet   string   // fleet id
	Version string   // loopkeeper version
	Addrs   []string // host:port, best first: mDNS libraries keep only one address of several
}

// label is what survives every mDNS library unescaped: no dots, spaces or upper case.
var label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// ValidLabel says whether s can be a node or fleet id.
func ValidLabel(s string) bool { return label.MatchString(s) }

// maxTXT is the length limit of one TXT string in bytes, RFC 6763 §6.1. A longer one makes the service invisible.
const maxTXT = 255

// maxAddrs is how many addresses of one record are taken: anybody in the house can announce, and each one is dialled.
const maxAddrs = 16

// TXT encodes the record, the version key first as RFC 6763 §6.7 asks. Errors are apierr.InvalidArgument.
func (r Record) TXT() ([]string, error) {
	if !ValidLabel(r.NodeID) {
		return nil, apierr.New(apierr.InvalidArgument, "node id %q is not a DNS label of a-z, 0-9 and -", r.NodeID)
	}
	if !ValidLabel(r.Fleet) {
		return nil, apierr.New(apierr.InvalidArgument, "fleet id %q is not a DNS label of a-z, 0-9 and -", r.Fleet)
	}
	txt := []string{"txtvers=1", "id=" + r.NodeID, "fleet=" + r.Fleet, "ver=" + r.Version}
	for _, a := range r.Addrs {
		txt = append(txt, "addr="+a)
	}
	for _, s := range txt {
		if len(s) > maxTXT {
			return nil, apierr.New(apierr.InvalidArgument, "the announcement %.40q… is longer than %d bytes", s, maxTXT)
		}
	}
	return txt, nil
}

// ParseTXT decodes what a worker announced; ok is false for anything that is not ours. Addresses are IP addresses: a name
// could lead out of the house.
func ParseTXT(fields []string) (r Record, ok bool) {
	vers := ""
	for _, f := range fields {
		k, v, _ := strings.Cut(f, "=")
		switch strings.ToLower(k) {
		case "txtvers":
			vers = v
		case "id":
			r.NodeID = v
		case "fleet":
			r.Fleet = v
		case "ver":
			r.Version = v
		case "addr":
			if host, _, err := net.SplitHostPort(v); err == nil && net.ParseIP(host) != nil && len(r.Addrs) < maxAddrs {
				r.Addrs = append(r.Addrs, v)
			}
		}
	}
	return r, vers == "1" && ValidLabel(r.NodeID) && ValidLabel(r.Fleet)
}

// virtual are name prefixes of interfaces that lead to containers and virtual machines, not to the LAN.
var virtual = []string{"docker", "veth", "br-", "virbr", "vmnet", "vethernet", "vboxnet", "cni", "flannel", "podman", "lxc", "utun", "awdl", "llw"}

// Interface is one usable network interface and the addresses it can be reached at.
type Interface struct {
	net.Interface
	IPs []net.IP
}

// Usable returns the interfaces worth asking: those named in only, else every one that is up, does multicast, is not
// loopback or virtual and has an address beyond the link. skipped says why others were left out, by name.
func Usable(only []string) (use []Interface, skipped map[string]string, err error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, nil, err
	}
	skipped = map[string]string{}
	for _, i := range all {
		ips := addresses(i)
		if why := unusable(i, ips, only); why != "" {
			skipped[i.Name] = why
			continue
		}
		use = append(use, Interface{i, ips})
	}
	sort.Slice(use, func(a, b int) bool { return use[a].Index < use[b].Index })
	return use, skipped, nil
}

func unusable(i net.Interface, ips []net.IP, only []string) string {
	if len(only) > 0 {
		for _, name := range only {
			if name == i.Name {
				return ""
			}
		}
		return "not among the configured interfaces"
	}
	switch {
	case i.Flags&net.FlagUp == 0:
		return "down"
	case i.Flags&net.FlagLoopback != 0:
		return "loopback"
	case i.Flags&net.FlagMulticast == 0:
		return "no multicast"
	case len(ips) == 0:
		return "no address beyond the link"
	}
	for _, p := range virtual {
		if strings.HasPrefix(strings.ToLower(i.Name), p) {
			return "virtual"
		}
	}
	return ""
}

func addresses(i net.Interface) []net.IP {
	addrs, err := i.Addrs()
	if err != nil {
		return nil
	}
	var ips []net.IP
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if ok && !n.IP.IsLinkLocalUnicast() {
			ips = append(ips, n.IP)
		}
	}
	// IPv4 first: it is what home networks route everywhere.
	sort.SliceStable(ips, func(a, b int) bool { return ips[a].To4() != nil && ips[b].To4() == nil })
	return ips
}
