package identity

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

const (
	aWorker      = "loopkeeper://home/worker/gpu-1"
	aCoordinator = "loopkeeper://home/coordinator/desk"
)

func TestMembersOfOneFleetMeet(t *testing.T) {
	a := newAuthority(t)
	server := ServerConfig(a.member(aWorker, nil), Expect{Role: Coordinator})
	client := ClientConfig(a.member(aCoordinator, nil), Expect{Role: Worker, ID: "gpu-1"})
	if s, c := meet(t, server, client); s != nil || c != nil {
		t.Errorf("server: %v; client: %v", s, c)
	}
}

// What the listening side says of those who must not come in.
func TestListenerRefuses(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	for _, c := range []struct {
		want   Reason
		client *Identity
	}{
		{OtherAuthority, other.member(aCoordinator, nil)},
		{OtherFleet, a.member("loopkeeper://office/coordinator/desk", nil)},
		{OtherRole, a.member("loopkeeper://home/worker/gpu-2", nil)},
		{OtherRole, a.member("loopkeeper://home/enrolment/desk", nil)},
		{NotAllowed, a.member("loopkeeper://home/coordinator/stolen", nil)},
		{Expired, a.member(aCoordinator, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })},
		{NotYetValid, a.member(aCoordinator, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) })},
		{OtherAuthority, a.member(aCoordinator, func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[:1] })},
	} {
		t.Run(string(c.want)+" "+c.client.Peer().String(), func(t *testing.T) {
			server := ServerConfig(a.member(aWorker, nil), Expect{Role: Coordinator, Allow: func(p Peer, _ *x509.Certificate) error {
				if p.ID == "stolen" {
					return apierr.New(apierr.Conflict, "revoked")
				}
				return nil
			}})
			client := ClientConfig(c.client, Expect{Role: Worker, Now: func() time.Time { return c.client.Leaf().NotBefore }})
			client.VerifyConnection = nil // the client itself would go on
			s, cl := meet(t, server, client)
			if ReasonOf(s) != c.want || cl == nil {
				t.Errorf("server says %q: %v; client: %v", ReasonOf(s), s, cl)
			}
		})
	}
}

func TestListenerRefusesWhoShowsNoCertificate(t *testing.T) {
	a := newAuthority(t)
	s, c := meet(t, ServerConfig(a.member(aWorker, nil), Expect{Role: Coordinator}), &tls.Config{InsecureSkipVerify: true})
	if ReasonOf(s) != NoCertificate || c == nil {
		t.Errorf("server: %v; client: %v", s, c)
	}
}

func TestListenerRefusesOldTLS(t *testing.T) {
	a := newAuthority(t)
	old := ClientConfig(a.member(aCoordinator, nil), Expect{Role: Worker})
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	s, c := meet(t, ServerConfig(a.member(aWorker, nil), Expect{Role: Coordinator}), old)
	if ReasonOf(s) != OldTLS || c == nil {
		t.Errorf("server: %v; client: %v", s, c)
	}
}

// A server that talks the client down to TLS 1.2 has the right certificate and is refused all the same.
func TestDiallerRefusesOldTLS(t *testing.T) {
	a := newAuthority(t)
	worker := a.member(aWorker, nil)
	server := &tls.Config{Certificates: []tls.Certificate{*worker.Shown()}, MaxVersion: tls.VersionTLS12}
	if s, c := meet(t, server, ClientConfig(a.member(aCoordinator, nil), Expect{Role: Worker})); s == nil || c == nil {
		t.Errorf("server: %v; client: %v", s, c)
	}
}

func TestDiallerRefuses(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	for _, c := range []struct {
		want   Reason
		server *Identity
	}{
		{OtherAuthority, other.member(aWorker, nil)},
		{OtherFleet, a.member("loopkeeper://office/worker/gpu-1", nil)},
		{OtherRole, a.member("loopkeeper://home/enrolment/gpu-1", nil)},
		{OtherNode, a.member("loopkeeper://home/worker/gpu-2", nil)},
		{Expired, a.member(aWorker, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })},
		{NotYetValid, a.member(aWorker, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) })},
	} {
		t.Run(string(c.want), func(t *testing.T) {
			client := ClientConfig(a.member(aCoordinator, nil), Expect{Role: Worker, ID: "gpu-1"})
			if _, got := meet(t, ServerConfig(c.server, Expect{Role: Coordinator}), client); ReasonOf(got) != c.want {
				t.Errorf("client says %v", got)
			}
		})
	}
}

// What a person reads about a clock names both times and what to do.
func TestClocksAreNamed(t *testing.T) {
	a := newAuthority(t)
	ended := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	long := func(c *x509.Certificate) { c.NotAfter = ended }
	worker, coordinator := a.member(aWorker, long), a.member(aCoordinator, nil)
	late := func() time.Time { return ended.Add(48 * time.Hour) }
	err := (Expect{Role: Worker, Now: late}).verify(tls.ConnectionState{PeerCertificates: []*x509.Certificate{worker.Leaf()}}, "home", coordinator.Authority(),
		x509.ExtKeyUsageServerAuth)
	e := apierr.As(err)
	for _, part := range []string{"ended at 2031-02-03T04:05:06Z", "this machine's clock says 2031-02-05T04:05:06Z"} {
		if !strings.Contains(e.Message, part) {
			t.Errorf("%q does not say %q", e.Message, part)
		}
	}
	if len(e.Next) == 0 || e.Code != apierr.Conflict {
		t.Errorf("no advice: %+v", e)
	}
}

// A renewed certificate is shown at the next handshake, with the same configuration.
func TestRenewalNeedsNoRestart(t *testing.T) {
	a := newAuthority(t)
	worker := a.member(aWorker, nil)
	server := ServerConfig(worker, Expect{Role: Coordinator})
	next := a.leaf(aWorker, worker.key, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(2 * time.Hour) })
	if err := worker.Renew(next.Raw); err != nil {
		t.Fatal(err)
	}
	var shown *x509.Certificate
	client := ClientConfig(a.member(aCoordinator, nil), Expect{Role: Worker, Allow: func(_ Peer, c *x509.Certificate) error { shown = c; return nil }})
	if s, c := meet(t, server, client); s != nil || c != nil {
		t.Fatalf("server: %v; client: %v", s, c)
	}
	if !shown.Equal(next) {
		t.Error("the old certificate was shown")
	}
}

func TestRenewalRefusesWhatIsNotTheSame(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	worker, someone := a.member(aWorker, nil), a.member(aWorker, nil)
	longer := func(c *x509.Certificate) { c.NotAfter = time.Now().Add(2 * time.Hour) }
	for name, der := range map[string][]byte{
		"another key":       someone.Leaf().Raw,
		"another authority": other.leaf(aWorker, worker.key, longer).Raw,
		"another role":      a.leaf("loopkeeper://home/coordinator/gpu-1", worker.key, longer).Raw,
		"an older one":      a.leaf(aWorker, worker.key, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(time.Minute) }).Raw,
		"no certificate":    []byte("hello"),
	} {
		if err := worker.Renew(der); apierr.CodeOf(err) != apierr.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The pin holds against another authority that shows the same names.
func TestPinRefusesAnotherAuthority(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	const name = "loopkeeper://home/enrolment/desk"
	serve := func(i *Identity) *tls.Config {
		return ShowingConfig(func() (*tls.Certificate, error) { return i.Shown(), nil })
	}
	pin := NewPin(FingerprintOf(a.cert), "", nil)
	if s, c := meet(t, serve(a.member(name, nil)), pin.Config()); s != nil || c != nil || !pin.Authority().Equal(a.cert) {
		t.Fatalf("server: %v; client: %v", s, c)
	}
	if _, c := meet(t, serve(other.member(name, nil)), pin.Config()); ReasonOf(c) != OtherAuthority {
		t.Errorf("client: %v", c)
	}
	if _, c := meet(t, serve(a.member(aWorker, nil)), pin.Config()); ReasonOf(c) != OtherRole {
		t.Errorf("a worker at the enrolment's place: %v", c)
	}
	// A copied authority certificate without its key: the leaf was signed by somebody else.
	forged := other.member(name, nil)
	shown := forged.Shown()
	shown.Certificate[1] = a.cert.Raw
	server := ShowingConfig(func() (*tls.Certificate, error) { return shown, nil })
	if _, c := meet(t, server, pin.Config()); ReasonOf(c) != OtherAuthority {
		t.Errorf("a forged chain: %v", c)
	}
	first := NewPin(Fingerprint{}, "home", nil)
	if _, c := meet(t, serve(other.member(name, nil)), first.Config()); c != nil {
		t.Fatal(c)
	}
	if _, c := meet(t, serve(a.member(name, nil)), first.Config()); ReasonOf(c) != OtherAuthority {
		t.Errorf("the authority changed under a code: %v", c)
	}
}

func TestNamesInCertificates(t *testing.T) {
	a := newAuthority(t)
	key := a.key
	for _, name := range []string{"https://home/worker/gpu-1", "loopkeeper://home/worker/gpu-1?x=1", "loopkeeper://home:1/worker/gpu-1", "loopkeeper://home/worker",
		"loopkeeper://home/worker/a/b", "loopkeeper://home/boss/gpu-1", "loopkeeper://HOME/worker/gpu-1", "loopkeeper://u@home/worker/gpu-1", "loopkeeper://home/worker/gpu-1#x"} {
		if p, err := PeerOf(a.leaf(name, key, nil)); err == nil {
			t.Errorf("%s is taken for %v", name, p)
		}
	}
	two := a.leaf(aWorker, key, func(c *x509.Certificate) { c.URIs = append(c.URIs, Peer{"home", Coordinator, "x"}.URI()) })
	if _, err := PeerOf(two); err == nil {
		t.Error("two names pass for one")
	}
	if p, err := PeerOf(a.leaf(aWorker, key, nil)); err != nil || p != (Peer{"home", Worker, "gpu-1"}) {
		t.Errorf("%v, %v", p, err)
	}
}
