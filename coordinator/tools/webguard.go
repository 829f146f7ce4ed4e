package tools

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// WebHost is a host that http.request may call.
type WebHost struct {
	Methods []string          // such as GET
	Private bool              // its addresses may be of this machine or of a private network
	Secrets map[string]string // files whose content is sent as the header of that name
}

// closed are the IPv4 networks that are not the public internet, by the registry of special-purpose addresses (RFC 6890 and after it).
var closed = prefixes("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4")

// closed6 are the networks within open6 that are not public either: Teredo and its neighbours, documentation, 6to4.
var (
	closed6 = prefixes("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
	open6   = netip.MustParsePrefix("2000::/3")
	nat64   = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052: the last four bytes are an IPv4 address
)

func prefixes(all ...string) (out []netip.Prefix) {
	for _, p := range all {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

// public says whether an address is one of the public internet.
func public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	in := closed
	if a.Is6() {
		if in = closed6; !open6.Contains(a) {
			return false
		}
	}
	for _, p := range in {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// host returns what is named for the target of a URL: the host with its port, or the host alone with the port of its scheme.
func (w Web) host(u *url.URL) (WebHost, bool) {
	name, port := strings.ToLower(u.Hostname()), u.Port()
	usual := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	if port == "" {
		port = usual
	}
	if h, ok := w.Hosts[net.JoinHostPort(name, port)]; ok {
		return h, true
	}
	h, ok := w.Hosts[name]
	return h, ok && port == usual
}

// client makes the client of one call. Every address is looked at after its name was resolved and before anything is sent to it, so that a
// name that resolves otherwise the second time gains nothing.
func (w Web) client(check func(*url.URL, string) error, follow bool, timeout time.Duration) *http.Client {
	const mostHops = 5
	return &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10, DialContext: func(ctx context.Context, network, at string) (net.Conn, error) {
			name, port, _ := net.SplitHostPort(at)
			h, named := w.Hosts[net.JoinHostPort(strings.ToLower(name), port)]
			if !named {
				h = w.Hosts[strings.ToLower(name)]
			}
			return (&net.Dialer{Control: func(_, address string, _ syscall.RawConn) error { return mayDial(h, name, address) }}).DialContext(ctx, network, at)
		}},
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			if !follow {
				return http.ErrUseLastResponse
			}
			if len(via) > mostHops {
				return failed(NotAllowed, "http.request: more than %d redirects", mostHops).next("call the last address itself")
			}
			next.Header = http.Header{"User-Agent": via[0].Header["User-Agent"]} // nothing that was meant for another host
			return check(next.URL, next.Method)
		},
	}
}

func mayDial(h WebHost, name, address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	a := at.Addr()
	switch {
	case public(a):
		return nil
	case h.Private && !a.IsMulticast() && !a.IsUnspecified():
		return nil
	}
	return failed(NotAllowed, "http.request: %s is %s, which is no address of the public internet", name, a).
		next("say private: true for the host under `http` in the settings, if that is meant")
}
