package announce

import (
	"log/slog"
	"net"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/mdns"
	"go.uber.org/goleak"

	"github.com/loopkeeper/loopkeeper/proto/discovery"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func options() Options {
	return Options{NodeID: "den", Fleet: "home", Version: "0.1.0", Port: 7701, Log: slog.New(slog.DiscardHandler)}
}

func TestRecordThatNobodyCouldSeeIsRefused(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"node id": func(o *Options) { o.NodeID = "Living Room" },
		"fleet":   func(o *Options) { o.Fleet = "" },
		"version": func(o *Options) { o.Version = strings.Repeat("1", 300) },
		"port":    func(o *Options) { o.Port = 0 },
	} {
		o := options()
		o.Interfaces = []string{"none-such"}
		change(&o)
		if a, err := Start(o); err == nil {
			a.Stop()
			t.Errorf("%s: it was accepted", name)
		}
	}
}

func TestOnlyAddressesThatAnswerAreAnnounced(t *testing.T) {
	i := discovery.Interface{IPs: []net.IP{net.ParseIP("192.168.1.5"), net.ParseIP("10.0.0.5"), net.ParseIP("fd00::5")}}
	for listens, want := range map[string]string{
		"":            "192.168.1.5 10.0.0.5 fd00::5",
		"::":          "192.168.1.5 10.0.0.5 fd00::5",
		"0.0.0.0":     "192.168.1.5 10.0.0.5",
		"10.0.0.5":    "10.0.0.5",
		"127.0.0.1":   "",
		"fd00::5":     "fd00::5",
		"192.168.9.9": "",
	} {
		a := Announcer{o: Options{IP: net.ParseIP(listens)}}
		var got []string
		for _, ip := range a.addresses(i) {
			got = append(got, ip.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("a listener on %q: %q, want %q", listens, got, want)
		}
	}
}

// lo is the loopback interface with these addresses.
func lo(t *testing.T, ips ...string) discovery.Interface {
	t.Helper()
	use, _, err := discovery.Usable([]string{"lo", "lo0"})
	if err != nil || len(use) != 1 {
		t.Skipf("this machine has no loopback interface named lo or lo0: %v %v", use, err)
	}
	i := use[0]
	i.IPs = nil
	for _, ip := range ips {
		i.IPs = append(i.IPs, net.ParseIP(ip))
	}
	return i
}

func TestResponderFollowsItsInterface(t *testing.T) {
	first, other := lo(t, "127.0.0.1"), lo(t, "127.0.0.1", "127.0.0.2")
	replugged := first
	replugged.Index += 1000
	var now []discovery.Interface
	o := options()
	o.usable = func() ([]discovery.Interface, error) { return now, nil }
	a := &Announcer{o: o, byName: map[string]responder{}}
	started := 0
	var have responder
	look := func(use ...discovery.Interface) {
		now = use
		a.update()
		if r := a.byName[first.Name]; r.server != have.server {
			started++
			have = r
		}
	}
	look(first)
	if have.server == nil {
		t.Skip("loopback takes no multicast listener here")
	}
	look(first)
	if started != 1 {
		t.Error("nothing changed, and it was restarted")
	}
	look(other)
	if started != 2 || !strings.Contains(have.says, "127.0.0.2") {
		t.Errorf("another address: %d starts, it says %q", started, have.says)
	}
	look(first)
	look(replugged)
	if started != 4 && started != 3 { // a listener on an index that is not there may be refused
		t.Errorf("an adapter that was plugged in again: %d starts", started)
	}
	look()
	if len(a.byName) != 0 {
		t.Errorf("the interface is gone, the responder is not: %v", a.byName)
	}
}

func TestInterfaceThatComesLaterIsUsed(t *testing.T) {
	i := lo(t, "127.0.0.1")
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		o := options()
		o.usable = func() ([]discovery.Interface, error) {
			looks++
			i.IPs = nil // nothing is opened: fake time and real sockets do not mix
			return []discovery.Interface{i}, nil
		}
		a, err := Start(o)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(17 * time.Second)
		a.Stop()
		a.Stop()
		if looks != 4 {
			t.Errorf("%d looks in 17 s, want one at once and one per 5 s", looks)
		}
	})
}

func TestTwoAnnouncersAreFound(t *testing.T) {
	i := lo(t, "127.0.0.1")
	want := map[string]discovery.Record{}
	for n, id := range []string{"den", "attic"} {
		o := options()
		o.NodeID, o.Port, o.IP, o.Interfaces = id, 7701+n, net.IPv4(127, 0, 0, 1), []string{i.Name}
		a, err := Start(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(a.Stop)
		if len(a.byName) == 0 {
			t.Skip("loopback takes no multicast listener here")
		}
		want[id] = discovery.Record{NodeID: id, Fleet: "home", Version: "0.1.0", Addrs: []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(o.Port))}}
	}
	ch := make(chan *mdns.ServiceEntry, 64) // the library drops what does not fit
	err := mdns.Query(&mdns.QueryParam{Service: discovery.Service, Domain: discovery.Domain, Timeout: time.Second, Interface: &i.Interface, Entries: ch,
		DisableIPv6: true, Logger: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)})
	close(ch)
	if err != nil {
		t.Skipf("loopback carries no multicast here: %v", err)
	}
	got := map[string]discovery.Record{}
	for e := range ch { // only now: the library changes entries until the query has ended
		if r, ok := discovery.ParseTXT(e.InfoFields); ok && want[r.NodeID].NodeID != "" && e.Name == r.NodeID+"."+discovery.Service+".local." {
			got[r.NodeID] = r
		}
	}
	if len(got) == 0 {
		t.Skip("loopback carries no multicast here: no answer")
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("found %+v, want %+v", got, want)
	}
}

func TestWorkerThatNobodyCanFindSaysSo(t *testing.T) {
	i := lo(t, "127.0.0.1")
	var said strings.Builder
	o := options()
	o.IP, o.Interfaces, o.Log = net.IPv4(192, 0, 2, 1), []string{i.Name}, slog.New(slog.NewTextHandler(&said, nil))
	a, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	a.Stop()
	if !strings.Contains(said.String(), "no network interface leads to this worker") {
		t.Errorf("it said %q", said.String())
	}
}
