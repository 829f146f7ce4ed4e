package fleet

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/mdns"

	"github.com/loopkeeper/loopkeeper/proto/discovery"
)

// Found is the outcome of one round of discovery.
type Found struct {
	Records  []discovery.Record // with at least one address each, by node id
	Rejected map[string]string  // instance name → why it is not ours
	Skipped  map[string]string  // interface → why it was not asked
	Asked    []string           // interfaces
}

// discover asks at once, a few more times quickly while the house starts up, then at the interval.
func (f *Fleet) discover() {
	for wait := min(time.Second, f.o.Interval); f.ctx.Err() == nil; wait = min(2*wait, f.o.Interval) {
		found, err := f.o.Find(f.ctx)
		if err != nil && f.ctx.Err() == nil {
			f.o.Log.Info("discovery failed", "error", err)
		}
		for _, r := range found.Records {
			if r.Fleet != f.o.Fleet {
				continue
			}
			for _, a := range r.Addrs {
				f.want(a, byMDNS, "")
			}
		}
		f.remark(found)
		pause(f.ctx, wait)
	}
}

// remark keeps what a round found for people, and forgets the reasons of addresses that nobody announces or tries any more.
func (f *Fleet) remark(found Found) {
	announced := map[string]bool{}
	for _, r := range found.Records {
		for _, a := range r.Addrs {
			announced[a] = true
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.found = found
	for a := range f.reasons {
		if _, tried := f.links[a]; !tried && !announced[a] {
			delete(f.reasons, a)
		}
	}
}

// otherService is why something that is no loopkeeper at all is rejected: homes are full of it.
const otherService = "is another service"

// MDNS finds workers by multicast DNS. The zero value asks every usable interface.
type MDNS struct {
	Fleet      string
	Interfaces []string // only these; empty: every usable one
}

// queryTime is how long one question stays open. The library does not stop earlier when asked to.
const queryTime = time.Second

// Find asks once on every usable interface and returns what answered within a second.
func (m MDNS) Find(ctx context.Context) (Found, error) {
	use, skipped, err := discovery.Usable(m.Interfaces)
	if err != nil {
		return Found{}, err
	}
	out := Found{Rejected: map[string]string{}, Skipped: skipped}
	var mu sync.Mutex
	var work sync.WaitGroup
	var failed []string
	byID := map[string]*discovery.Record{}
	for _, i := range use {
		out.Asked = append(out.Asked, i.Name)
		work.Go(func() {
			entries, err := query(ctx, i.Interface)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = append(failed, fmt.Sprintf("%s: %v", i.Name, err))
			}
			for _, e := range entries {
				m.sort(e, byID, out.Rejected)
			}
		})
	}
	work.Wait()
	for _, r := range byID {
		out.Records = append(out.Records, *r)
	}
	sort.Slice(out.Records, func(a, b int) bool { return out.Records[a].NodeID < out.Records[b].NodeID })
	if len(failed) > 0 && len(failed) == len(use) {
		sort.Strings(failed)
		return out, fmt.Errorf("no interface could be asked: %s", strings.Join(failed, "; "))
	}
	return out, nil
}

// query asks on one interface. The library mutates an entry after it was sent and drops what nobody takes, so pointers
// are collected by a reader that is there before the question and read only when the query has returned.
func query(ctx context.Context, i net.Interface) ([]*mdns.ServiceEntry, error) {
	ch := make(chan *mdns.ServiceEntry, 64) // the library drops what does not fit
	var got []*mdns.ServiceEntry
	read := make(chan struct{})
	go func() {
		defer close(read)
		for e := range ch {
			got = append(got, e)
		}
	}()
	err := mdns.QueryContext(ctx, &mdns.QueryParam{Service: discovery.Service, Domain: discovery.Domain, Timeout: queryTime, Interface: &i,
		Entries: ch, DisableIPv6: true, Logger: log.New(io.Discard, "", 0)})
	close(ch)
	<-read
	return got, err
}

// sort files one answer: ours, or rejected and why. The library reports whatever answered, a printer too.
func (m MDNS) sort(e *mdns.ServiceEntry, byID map[string]*discovery.Record, rejected map[string]string) {
	if !strings.HasSuffix(e.Name, "."+discovery.Service+"."+discovery.Domain+".") {
		rejected[e.Name] = otherService
		return
	}
	r, ok := discovery.ParseTXT(e.InfoFields)
	switch {
	case !ok:
		rejected[e.Name] = "its record is not one of loopkeeper"
		return
	case m.Fleet != "" && r.Fleet != m.Fleet:
		rejected[r.NodeID] = fmt.Sprintf("belongs to fleet %q, this is %q (next: set the same `fleet` on both machines)", r.Fleet, m.Fleet)
		return
	}
	if len(r.Addrs) == 0 && e.AddrV4 != nil {
		r.Addrs = []string{net.JoinHostPort(e.AddrV4.String(), strconv.Itoa(e.Port))}
	}
	have := byID[r.NodeID]
	if have == nil {
		byID[r.NodeID] = &r
		return
	}
	for _, a := range r.Addrs { // each interface's responder says its own addresses
		if !slices.Contains(have.Addrs, a) {
			have.Addrs = append(have.Addrs, a)
		}
	}
}
