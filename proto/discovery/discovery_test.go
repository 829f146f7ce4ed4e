package discovery

import (
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
	r, ok := ParseTXT([]string{"TXTVERS=1", "id=a", "fleet=b", "addr=nonsense", "addr=1.2.3.4:5", "x"})
	if !ok || len(r.Addrs) != 1 {
		t.Errorf("got %+v %v", r, ok)
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
