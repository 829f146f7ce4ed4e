package fleet

import (
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/mdns"

	"github.com/loopkeeper/loopkeeper/proto/discovery"
)

// announce answers mDNS questions on loopback as worker/announce does; the coordinator may not import it.
func announce(t *testing.T, i net.Interface, instance, service string, port int, txt []string) {
	t.Helper()
	zone, err := mdns.NewMDNSService(instance, service, "local.", instance+".local.", port, []net.IP{net.IPv4(127, 0, 0, 1)}, txt)
	if err != nil {
		t.Fatal(err)
	}
	server, err := mdns.NewServer(&mdns.Config{Zone: zone, Iface: &i, Logger: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)})
	if err != nil {
		t.Skipf("loopback takes no multicast listener here: %v", err)
	}
	t.Cleanup(func() { server.Shutdown() })
}

func record(t *testing.T, r discovery.Record) []string {
	t.Helper()
	txt, err := r.TXT()
	if err != nil {
		t.Fatal(err)
	}
	return txt
}

func TestWorkersFindEachOtherOverLoopback(t *testing.T) {
	use, _, err := discovery.Usable([]string{"lo", "lo0"})
	if err != nil || len(use) != 1 {
		t.Skipf("this machine has no loopback interface named lo or lo0: %v %v", use, err)
	}
	lo := use[0]
	for n, id := range []string{"den", "attic"} {
		addr := fmt.Sprintf("127.0.0.1:%d", 7701+n)
		announce(t, lo.Interface, id, discovery.Service, 7701+n, record(t, discovery.Record{NodeID: id, Fleet: "home", Version: "0.1.0", Addrs: []string{addr}}))
	}
	announce(t, lo.Interface, "bare", discovery.Service, 7703, record(t, discovery.Record{NodeID: "bare", Fleet: "home", Version: "0.1.0"}))
	announce(t, lo.Interface, "lab", discovery.Service, 7704, record(t, discovery.Record{NodeID: "lab", Fleet: "lab", Version: "0.1.0"}))
	announce(t, lo.Interface, "odd", discovery.Service, 7705, []string{"path=/"})
	announce(t, lo.Interface, "printer", "_ipp._tcp", 631, []string{"path=/"})

	found, err := MDNS{Fleet: "home", Interfaces: []string{lo.Name}}.Find(t.Context())
	if err == nil && len(found.Records) == 0 {
		t.Skipf("loopback carries no multicast here: no answer on %q", found.Asked)
	}
	if err != nil {
		t.Skipf("loopback carries no multicast here: %v", err)
	}
	var got []string
	for _, r := range found.Records {
		got = append(got, r.NodeID+" "+strings.Join(r.Addrs, ","))
	}
	if want := []string{"attic 127.0.0.1:7702", "bare 127.0.0.1:7703", "den 127.0.0.1:7701"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if why := found.Rejected["lab"]; !strings.HasPrefix(why, `belongs to fleet "lab"`) {
		t.Errorf("another fleet is rejected because %q", why)
	}
	if why := found.Rejected["odd._loopkeeper._tcp.local."]; !strings.Contains(why, "record") {
		t.Errorf("a foreign record is rejected because %q: %v", why, found.Rejected)
	}
	if !slices.Equal(found.Asked, []string{lo.Name}) {
		t.Errorf("asked %q", found.Asked)
	}
}

func TestAnswersAreSorted(t *testing.T) {
	m := MDNS{Fleet: "home"}
	byID, rejected := map[string]*discovery.Record{}, map[string]string{}
	den := func(addr string) *mdns.ServiceEntry {
		return &mdns.ServiceEntry{Name: "den." + discovery.Service + ".local.", InfoFields: record(t, discovery.Record{NodeID: "den", Fleet: "home", Version: "0.1.0", Addrs: []string{addr}})}
	}
	m.sort(den("192.168.1.5:1"), byID, rejected)
	m.sort(den("10.0.0.5:1"), byID, rejected)
	m.sort(den("192.168.1.5:1"), byID, rejected)
	m.sort(&mdns.ServiceEntry{Name: "laser._ipp._tcp.local.", InfoFields: []string{"path=/"}}, byID, rejected)
	if got := byID["den"].Addrs; !slices.Equal(got, []string{"192.168.1.5:1", "10.0.0.5:1"}) {
		t.Errorf("the addresses of two interfaces: %q", got)
	}
	if len(byID) != 1 || rejected["laser._ipp._tcp.local."] != otherService {
		t.Errorf("%v %v", byID, rejected)
	}
}
