package enrol

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"slices"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/trust"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// Bounds of the requests without a token. How often one may begin also bounds how often somebody in between may try for
// equal codes: one in a million each, at most 70 tries while a request waits.
const (
	mostAsks     = 32               // at once
	mostPerHost  = 4                // of them, from one address
	revealWithin = 30 * time.Second // of the beginning
	decideWithin = 10 * time.Minute // of the revelation
	beginEvery   = 10 * time.Second
	beginBurst   = 10
)

// Pending is a machine that waits for a person.
type Pending struct {
	ID      string // node id, as it says
	Name    string // as it says
	Host    string // where it called from
	Code    string // six digits; the machine shows the same ones unless somebody is in between
	Expires time.Time
}

// ask is one request.
type ask struct {
	Pending
	commitment []byte
	nonce      []byte // ours
	csr        []byte // nil until revealed
	leaf       []byte // set when accepted
	refused    bool
}

// asks are all requests, by ticket. It decides, and does no I/O; its caller holds a lock.
type asks struct {
	byTicket map[string]*ask
	credit   float64   // requests that may begin now
	filled   time.Time // when credit was last filled up
}

func (a *asks) begin(now time.Time, p Pending, commitment []byte) (ticket string, nonce []byte, err error) {
	if len(commitment) != sha256.Size {
		return "", nil, apierr.New(apierr.InvalidArgument, "a commitment has %d bytes, not %d", sha256.Size, len(commitment))
	}
	a.expire(now)
	a.credit = min(beginBurst, a.credit+float64(now.Sub(a.filled))/float64(beginEvery))
	a.filled = now
	same := 0
	for _, other := range a.byTicket {
		if other.Host == p.Host {
			same++
		}
	}
	if a.credit < 1 || len(a.byTicket) >= mostAsks || same >= mostPerHost {
		return "", nil, apierr.New(apierr.Unavailable, "too many machines ask to join just now").
			WithNext("try again in a minute", "join with a token: loopkeeper tokens create  # on the coordinator")
	}
	a.credit--
	p.Expires = now.Add(revealWithin)
	ticket, nonce = string(random(16)), random(nonceBytes)
	a.byTicket[ticket] = &ask{Pending: p, commitment: commitment, nonce: nonce}
	return ticket, nonce, nil
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return b
}

func (a *asks) expire(now time.Time) {
	for ticket, k := range a.byTicket {
		if now.After(k.Expires) {
			delete(a.byTicket, ticket)
		}
	}
}

func (a *asks) of(now time.Time, ticket []byte) (*ask, error) {
	a.expire(now)
	k := a.byTicket[string(ticket)]
	if k == nil {
		return nil, apierr.New(apierr.NotFound, "the request to join is over").WithNext("loopkeeper worker join")
	}
	return k, nil
}

// reveal opens a commitment; what does not match ends the request.
func (a *asks) reveal(now time.Time, ticket, nonce, csr []byte, codeOf func(ours []byte) string) error {
	k, err := a.of(now, ticket)
	if err != nil {
		return err
	}
	want := commit(nonce, csr)
	if k.csr != nil || len(nonce) != nonceBytes || len(csr) == 0 || len(csr) > trust.MaxRequest || subtle.ConstantTimeCompare(want[:], k.commitment) != 1 {
		delete(a.byTicket, string(ticket))
		return apierr.New(apierr.InvalidArgument, "what was revealed is not what was committed to").WithNext("loopkeeper worker join")
	}
	k.csr, k.Code = csr, codeOf(k.nonce)
	k.Expires = now.Add(decideWithin)
	return nil
}

// pending returns those that wait for a person, by name.
func (a *asks) pending(now time.Time) []Pending {
	a.expire(now)
	var out []Pending
	for _, k := range a.byTicket {
		if k.waits() {
			out = append(out, k.Pending)
		}
	}
	slices.SortFunc(out, func(x, y Pending) int { return strings.Compare(x.Name+"\n"+x.ID+x.Code, y.Name+"\n"+y.ID+y.Code) })
	return out
}

func (k *ask) waits() bool { return k.csr != nil && k.leaf == nil && !k.refused }

// called returns those that wait under a name or id.
func (a *asks) called(now time.Time, name string) ([]*ask, error) {
	a.expire(now)
	var out []*ask
	for _, k := range a.byTicket {
		if k.waits() && (k.Name == name || k.ID == name) {
			out = append(out, k)
		}
	}
	if out == nil {
		return nil, apierr.New(apierr.NotFound, "no machine called %.80q waits to join", name).WithNext("loopkeeper nodes list")
	}
	return out, nil
}
