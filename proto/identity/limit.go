package identity

import (
	"net"
	"sync"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// Limits bound what connections may cost before anybody knows who is there.
type Limits struct {
	Total   int           // connections at once
	PerHost int           // of them, from one IP address
	Life    time.Duration // after which a connection is closed whatever it does; 0: never
}

// Limit returns a listener that closes what is over the limits at once, before a byte is read, and notes it.
func Limit(l net.Listener, limits Limits, refusals *Refusals) net.Listener {
	return &limited{Listener: l, limits: limits, refusals: refusals, hosts: map[string]int{}}
}

type limited struct {
	net.Listener
	limits   Limits
	refusals *Refusals

	mu    sync.Mutex
	total int
	hosts map[string]int
}

var tooMany = NewRefusal(TooManyConnected, apierr.New(apierr.Unavailable, "more connections than one machine or all together may have"))

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		host := HostOf(conn.RemoteAddr())
		if !l.enter(host) {
			l.refusals.Note(conn.RemoteAddr(), tooMany)
			conn.Close() // nothing was written: an error means that it is gone
			continue
		}
		c := &counted{Conn: conn, leave: sync.OnceFunc(func() { l.leave(host) })}
		if l.limits.Life > 0 {
			c.end = time.AfterFunc(l.limits.Life, func() { conn.Close() }) // its reader then closes c
		}
		return c, nil
	}
}

func (l *limited) enter(host string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total >= l.limits.Total || l.hosts[host] >= l.limits.PerHost {
		return false
	}
	l.total++
	l.hosts[host]++
	return true
}

func (l *limited) leave(host string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.hosts[host]--; l.hosts[host] == 0 {
		delete(l.hosts, host)
	}
}

type counted struct {
	net.Conn
	leave func()
	end   *time.Timer // nil: never
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.leave()
	if c.end != nil {
		c.end.Stop()
	}
	return c.Conn.Close()
}
