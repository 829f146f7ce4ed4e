package discovery

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRecordSurvivesItsTXT(t *testing.T) {
	want := Record{NodeID: "den-3f9a", Fleet: "home", Version: "0.1.0", Addrs: []string{"192.168.1.20:7701", "[fd00::1]:7701"}}
	txt, err := want.TXT()
	if err != nil {
		t.Fatal(err)
	}
	got, ok := ParseTXT(txt)
	if !ok || !cmp.Equal(got, want) {
		t.Fatalf("%v %s", ok, cmp.Diff(want, got))
	}
}

func TestRecordThatWouldBeInvisibleIsRefused(t *testing.T) {
	for _, r := range []Record{{NodeID: "Living Room", Fleet: "home"}, {NodeID: "a.b", Fleet: "home"}, {NodeID: "", Fleet: "home"},
		{NodeID: "a", Fleet: "my home"}, {NodeID: strings.Repeat("a", 64), Fleet: "home"}, {NodeID: "a", Fleet: "home", Version: strings.Repeat("x", 300)}} {
		if _, err := r.TXT(); err == nil {
			t.Errorf("%+v was accepted", r)
		}
	}
}

func TestOthersRecordsAreNotOurs(t *testing.T) {
	for _, txt := range [][]string{nil, {"path=/printers"}, {"txtvers=2", "id=a", "fleet=home"}, {"txtvers=1", "id=A B", "fleet=home"}, {"txtvers=1", "id=a"}} {
		if _, ok := ParseTXT(txt); ok {
			t.Errorf("%q was taken for ours", txt)
		}
	}
	r, ok := ParseTXT([]string{"TXTVERS=1", "id=a", "fleet=b", "addr=nonsense", "addr=example.org:80", "addr=1.2.3.4:5", "x"})
	if !ok || len(r.Addrs) != 1 {
		t.Errorf("got %+v %v", r, ok)
	}
	many := []string{"txtvers=1", "id=a", "fleet=b"}
	for i := range 300 {
		many = append(many, fmt.Sprintf("addr=10.0.0.%d:%d", i%250, i+1))
	}
	if r, ok := ParseTXT(many); !ok || len(r.Addrs) > 16 {
		t.Errorf("of 300 addresses %d are taken", len(r.Addrs))
	}
}

func TestConfiguredInterfacesWin(t *testing.T) {
	use, _, err := Usable([]string{"lo", "lo0"})
	if err != nil {
		t.Fatal(err)
	}
	if len(use) != 1 || len(use[0].IPs) == 0 {
		t.Skipf("this machine has no loopback interface named lo or lo0: %v", use)
	}
	rest, skipped, err := Usable(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range rest {
		if i.Name == use[0].Name {
			t.Fatal("loopback is used without being named")
		}
	}
	if skipped[use[0].Name] != "loopback" {
		t.Fatalf("skipped %v", skipped)
	}
}

func TestInterfacesThatDoNotLeadToTheHouseAreLeftOut(t *testing.T) {
	up := net.FlagUp | net.FlagMulticast
	ip := []net.IP{net.IPv4(192, 168, 1, 5)}
	for _, c := range []struct {
		name  string
		flags net.Flags
		ips   []net.IP
		only  []string
		why   string
	}{
		{"eth0", up, ip, nil, ""},
		{"eth0", net.FlagMulticast, ip, nil, "down"},
		{"lo", up | net.FlagLoopback, ip, nil, "loopback"},
		{"ppp0", net.FlagUp, ip, nil, "no multicast"},
		{"eth0", up, nil, nil, "no address beyond the link"},
		{"docker0", up, ip, nil, "virtual"},
		{"vEthernet (WSL)", up, ip, nil, "virtual"},
		{"br-1a2b3c", up, ip, nil, "virtual"},
		{"br0", up, ip, nil, ""},
		{"docker0", up, ip, []string{"docker0"}, ""},
		{"eth0", up, ip, []string{"eth1"}, "not among the configured interfaces"},
	} {
		if got := unusable(net.Interface{Name: c.name, Flags: c.flags}, c.ips, c.only); got != c.why {
			t.Errorf("%s %v: %q, want %q", c.name, c.flags, got, c.why)
		}
	}
}
