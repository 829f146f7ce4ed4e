// Package announce makes a worker findable by multicast DNS. Every defect of the library that could make the service
// invisible without an error is met by a check before it starts.
package announce

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/mdns"

	"github.com/loopkeeper/loopkeeper/proto/discovery"
)

// Options is what is announced, and where.
type Options struct {
	NodeID     string
	Fleet      string
	Version    string
	Port       int           // of the worker's listener
	IP         net.IP        // the only address that the listener answers on; nil: all of an interface's
	Interfaces []string      // only these; empty: every usable one
	Interval   time.Duration // between looks at the interfaces; 0 is 5 s
	Log        *slog.Logger

	usable func() ([]discovery.Interface, error) // nil: the machine's own
}

// Announcer answers mDNS questions, one responder per interface, and follows interfaces that come and go.
type Announcer struct {
	o      Options
	cancel context.CancelFunc
	work   sync.WaitGroup
	byName map[string]responder // owned by the loop
}

type responder struct {
	says   string // index of its interface and addresses; when they change it needs another responder
	server *mdns.Server
}

// Start checks the record and begins to answer. It fails when the record could never be seen; an interface that cannot be
// used is logged and tried again.
func Start(o Options) (*Announcer, error) {
	if o.Interval == 0 {
		o.Interval = 5 * time.Second
	}
	if o.usable == nil {
		o.usable = func() ([]discovery.Interface, error) {
			use, _, err := discovery.Usable(o.Interfaces)
			return use, err
		}
	}
	if _, err := (discovery.Record{NodeID: o.NodeID, Fleet: o.Fleet, Version: o.Version}).TXT(); err != nil {
		return nil, err
	}
	if o.Port < 1 || o.Port > 65535 {
		return nil, fmt.Errorf("announce port %d: out of range", o.Port)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := &Announcer{o: o, cancel: cancel, byName: map[string]responder{}}
	a.update()
	if len(a.byName) == 0 {
		o.Log.Warn("no network interface leads to this worker: it is found only where its address is given", "address", o.IP, "port", o.Port)
	}
	a.work.Go(func() { a.loop(ctx) })
	return a, nil
}

// Stop ends all responders. It may be called more than once.
func (a *Announcer) Stop() {
	a.cancel()
	a.work.Wait()
}

func (a *Announcer) loop(ctx context.Context) {
	tick := time.NewTicker(a.o.Interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			a.update()
		case <-ctx.Done():
			for name := range a.byName {
				a.silence(name)
			}
			return
		}
	}
}

// update starts and stops responders until they match the interfaces.
func (a *Announcer) update() {
	use, err := a.o.usable()
	if err != nil {
		a.o.Log.Warn("network interfaces cannot be listed", "error", err)
		return
	}
	seen := map[string]bool{}
	for _, i := range use {
		addrs := a.addresses(i)
		says := fmt.Sprint(i.Index, addrs) // an adapter that was unplugged comes back with another index
		seen[i.Name] = len(addrs) > 0
		if have, ok := a.byName[i.Name]; ok && have.says == says || len(addrs) == 0 {
			continue
		}
		a.silence(i.Name)
		server, err := a.respond(i.Interface, addrs)
		if err != nil {
			a.o.Log.Warn("cannot announce", "interface", i.Name, "error", err)
			continue
		}
		a.byName[i.Name] = responder{says, server}
		a.o.Log.Info("announcing", "interface", i.Name, "addresses", addrs)
	}
	for name := range a.byName {
		if !seen[name] {
			a.silence(name)
		}
	}
}

// addresses are those of an interface that the listener answers on. One on 0.0.0.0 answers on no IPv6 address.
func (a *Announcer) addresses(i discovery.Interface) []net.IP {
	var out []net.IP
	for _, ip := range i.IPs {
		isAny := a.o.IP == nil || a.o.IP.Equal(net.IPv6unspecified) || a.o.IP.IsUnspecified() && ip.To4() != nil
		if isAny || ip.Equal(a.o.IP) {
			out = append(out, ip)
		}
	}
	return out
}

func (a *Announcer) silence(name string) {
	if r, ok := a.byName[name]; ok {
		if err := r.server.Shutdown(); err != nil {
			a.o.Log.Info("responder did not close cleanly", "interface", name, "error", err)
		}
		delete(a.byName, name)
	}
}

func (a *Announcer) respond(i net.Interface, ips []net.IP) (*mdns.Server, error) {
	record := discovery.Record{NodeID: a.o.NodeID, Fleet: a.o.Fleet, Version: a.o.Version}
	for _, ip := range ips {
		record.Addrs = append(record.Addrs, net.JoinHostPort(ip.String(), strconv.Itoa(a.o.Port)))
	}
	txt, err := record.TXT()
	if err != nil {
		return nil, err
	}
	// An explicit host and addresses: without them the library looks its own host name up, which fails in containers.
	zone, err := mdns.NewMDNSService(a.o.NodeID, discovery.Service, discovery.Domain+".", a.o.NodeID+"."+discovery.Domain+".", a.o.Port, ips, txt)
	if err != nil {
		return nil, err
	}
	return mdns.NewServer(&mdns.Config{Zone: zone, Iface: &i, Logger: log.New(io.Discard, "", 0)})
}
