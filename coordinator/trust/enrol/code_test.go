package enrol

import (
	"context"
	"crypto/sha256"
	"net"
	"regexp"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/proto/identity"
	enrolv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/enrol/v1"
)

type answer struct {
	a   Admission
	err error
}

// asking starts Ask and returns the code that the machine shows, and where the end comes. The person at the machine saw the same
// code where she accepted it, or did not.
func asking(t *testing.T, addr string, m Machine, same bool) (string, <-chan answer) {
	t.Helper()
	compared := func(context.Context, string) (bool, error) { return same, nil }
	ctx, cancel := context.WithCancel(t.Context())
	shown, end, done := make(chan string, 1), make(chan answer, 1), make(chan struct{})
	go func() {
		defer close(done)
		a, err := Ask(ctx, addr, "", m, Person{Show: func(code string) { shown <- code }, Compared: compared})
		end <- answer{a, err}
	}()
	t.Cleanup(func() { cancel(); <-done })
	select {
	case code := <-shown:
		return code, end
	case e := <-end:
		t.Fatal(e.err)
		return "", nil
	}
}

func TestJoinByCode(t *testing.T) {
	g := newGate(t, 300*time.Millisecond) // the wait outlives its connections
	m, _ := machine(t, "gpu-1")
	code, end := asking(t, g.addr, m, true)
	waiting := g.Pending()
	if len(waiting) != 1 || waiting[0].Code != code || waiting[0].Name != m.Name || !regexp.MustCompile(`^\d{6}$`).MatchString(code) {
		t.Fatalf("the machine shows %s, here waits %+v", code, waiting)
	}
	wrong := "000000"
	if code == wrong {
		wrong = "000001"
	}
	if _, err := g.Accept(t.Context(), m.Name, wrong); apierr.CodeOf(err) != apierr.Conflict {
		t.Errorf("another code: %v", err)
	}
	if _, err := g.Accept(t.Context(), "nobody", code); apierr.CodeOf(err) != apierr.NotFound {
		t.Errorf("another name: %v", err)
	}
	if len(g.book.Nodes()) != 0 {
		t.Fatal("it is in already")
	}
	if _, err := g.Accept(t.Context(), m.Name, code[:3]+" "+code[3:]); err != nil {
		t.Fatal(err)
	}
	e := <-end
	if e.err != nil {
		t.Fatal(e.err)
	}
	p, err := identity.PeerOf(e.a.Leaf)
	if err == nil {
		err = g.book.Allow(p, e.a.Leaf)
	}
	if err != nil || len(g.Pending()) != 0 {
		t.Errorf("%v: %v", p, err)
	}
}

func TestRefusedByAPerson(t *testing.T) {
	g := newGate(t, 0)
	m, _ := machine(t, "gpu-1")
	_, end := asking(t, g.addr, m, true)
	if err := g.Refuse("gpu-1"); err != nil {
		t.Fatal(err)
	}
	if e := <-end; apierr.CodeOf(e.err) != apierr.Conflict || len(g.book.Nodes()) != 0 {
		t.Errorf("told: %v", e.err)
	}
}

// Somebody in between has to end the machine's TLS with an authority of his own, and to ask the real coordinator with a
// request of his own: the two codes differ.
func TestRelayShowsTwoCodes(t *testing.T) {
	real, between := newGate(t, 0), newGate(t, 0)
	m, _ := machine(t, "gpu-1")
	onMachine, end := asking(t, between.addr, m, false)
	his, _ := machine(t, "gpu-1")
	his.Name = m.Name
	asking(t, real.addr, his, true)
	if atHome := real.Pending()[0].Code; atHome == onMachine { // one in a million by chance
		t.Fatalf("both show %s", atHome)
	}
	if _, err := real.Accept(t.Context(), m.Name, onMachine); apierr.CodeOf(err) != apierr.Conflict {
		t.Errorf("the machine's code at the real coordinator: %v", err)
	}
	if _, err := between.Accept(t.Context(), m.Name, onMachine); err != nil { // he accepts for the coordinator
		t.Fatal(err)
	}
	if e := <-end; apierr.CodeOf(e.err) != apierr.Conflict || e.a.Authority != nil {
		t.Errorf("the machine believes who is in between: %v, %v", e.a, e.err)
	}
}

// Each part changes the code, so that nobody in between can keep one of them his own.
func TestEveryPartIsInTheCode(t *testing.T) {
	nonce, other := make([]byte, nonceBytes), append(make([]byte, nonceBytes-1), 1)
	base := code(nonce, nonce, []byte("csr"), identity.Fingerprint{})
	for name, c := range map[string]string{
		"machine's nonce": code(other, nonce, []byte("csr"), identity.Fingerprint{}), "coordinator's nonce": code(nonce, other, []byte("csr"), identity.Fingerprint{}),
		"request": code(nonce, nonce, []byte("CSR"), identity.Fingerprint{}), "authority": code(nonce, nonce, []byte("csr"), identity.Fingerprint{1}),
	} {
		if c == base {
			t.Errorf("the %s is not in the code", name)
		}
	}
}

// Who has seen the coordinator's nonce cannot choose another nonce or request any more.
func TestCommitmentBinds(t *testing.T) {
	g := newGate(t, 0)
	m, _ := machine(t, "gpu-1")
	client, hangUp, err := dial(g.addr, identity.NewPin(identity.Fingerprint{}, "home", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer hangUp()
	csr, err := identity.Request(m.Key)
	if err != nil {
		t.Fatal(err)
	}
	nonce := random(nonceBytes)
	c := commit(nonce, csr)
	for range 2 {
		begun, err := client.Begin(t.Context(), &enrolv1.BeginRequest{Commitment: c[:], NodeId: m.ID, Name: m.Name})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Reveal(t.Context(), &enrolv1.RevealRequest{Ticket: begun.GetTicket(), Nonce: random(nonceBytes), Csr: csr})
		if apierr.CodeOf(apierr.FromStatus(err)) != apierr.InvalidArgument {
			t.Errorf("another nonce: %v", err)
		}
		// The failed try ends the request: there is no second one.
		_, err = client.Reveal(t.Context(), &enrolv1.RevealRequest{Ticket: begun.GetTicket(), Nonce: nonce, Csr: csr})
		if apierr.CodeOf(apierr.FromStatus(err)) != apierr.NotFound {
			t.Errorf("a second try: %v", err)
		}
	}
}

func TestAsksAreBounded(t *testing.T) {
	now := time.Unix(1e9, 0)
	a := asks{byTicket: map[string]*ask{}, credit: beginBurst, filled: now}
	commitment := make([]byte, sha256.Size)
	from := func(i int) Pending { return Pending{ID: "a", Name: "a", Host: net.IPv4(10, 0, 0, byte(i)).String()} }
	for i := range mostPerHost + 1 {
		if _, _, err := a.begin(now, from(0), commitment); (err == nil) != (i < mostPerHost) {
			t.Fatalf("request %d of one host: %v", i, err)
		}
	}
	began := 0
	for i := range 86400 { // a day of one try a second, each from another address
		now = now.Add(time.Second)
		if _, _, err := a.begin(now, from(1+i%250), commitment); err == nil {
			began++
		}
		if len(a.byTicket) > mostAsks {
			t.Fatalf("%d requests at once", len(a.byTicket))
		}
	}
	if most := 86400/10 + beginBurst; began > most || began < 1000 {
		t.Errorf("%d requests began in a day, at most %d should", began, most)
	}
}

// A request that nobody decides on ends, and cannot be accepted later.
func TestAsksExpire(t *testing.T) {
	now := time.Unix(1e9, 0)
	a := asks{byTicket: map[string]*ask{}, credit: beginBurst, filled: now}
	nonce, csr := random(nonceBytes), []byte("csr")
	c := commit(nonce, csr)
	ticket, _, err := a.begin(now, Pending{ID: "a", Name: "a"}, c[:])
	if err != nil {
		t.Fatal(err)
	}
	if err := a.reveal(now, []byte(ticket), nonce, csr, func([]byte) string { return "123456" }); err != nil {
		t.Fatal(err)
	}
	if len(a.pending(now.Add(decideWithin))) != 1 || len(a.pending(now.Add(decideWithin+time.Second))) != 0 {
		t.Error("it does not end after ten minutes")
	}
	if _, err := a.called(now.Add(decideWithin+time.Second), "a"); apierr.CodeOf(err) != apierr.NotFound {
		t.Errorf("%v", err)
	}
}
