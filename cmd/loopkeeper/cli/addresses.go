package cli

import (
	"net"
	"strconv"

	"github.com/loopkeeper/loopkeeper/proto/discovery"
)

// lanAddresses are the addresses under which other machines reach a listener: for one that listens everywhere those of this
// machine's usable interfaces, IPv4 first; none for a listener on loopback.
func lanAddresses(l net.Addr) []string {
	tcp, ok := l.(*net.TCPAddr)
	if !ok || tcp.IP.IsLoopback() {
		return nil
	}
	if !tcp.IP.IsUnspecified() {
		return []string{l.String()}
	}
	interfaces, _, err := discovery.Usable(nil)
	if err != nil {
		return nil
	}
	var four, six []string
	for _, i := range interfaces {
		for _, ip := range i.IPs {
			switch addr := net.JoinHostPort(ip.String(), strconv.Itoa(tcp.Port)); {
			case ip.To4() != nil:
				four = append(four, addr)
			case tcp.IP.To4() == nil && !ip.IsLinkLocalUnicast():
				six = append(six, addr)
			}
		}
	}
	if len(four) > 0 { // nobody types an IPv6 address when there is another
		return four
	}
	return six
}
