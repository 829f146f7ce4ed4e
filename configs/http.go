package configs

import (
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// HTTPHost is a host that the tool http.request may call.
type HTTPHost struct {
	// Methods are those that may be used. Default: GET and HEAD.
	Methods []string `yaml:"methods" json:"methods"`
	// Private says that the host's addresses may be of this machine or of a private network.
	Private bool `yaml:"private" json:"private"`
	// Secrets are files whose content is sent as the header of that name.
	Secrets map[string]string `yaml:"secrets" json:"secrets,omitempty"`
}

// HTTPHosts is a table of HTTPHost by host, for the port of the scheme, or host:port.
type HTTPHosts map[string]HTTPHost

// String is "GET, POST, private, secret Authorization".
func (h HTTPHost) String() string {
	said := slices.Clone(h.Methods)
	if h.Private {
		said = append(said, "private")
	}
	for _, name := range slices.Sorted(maps.Keys(h.Secrets)) {
		said = append(said, "secret "+name)
	}
	return strings.Join(said, ", ")
}

// String joins the table.
func (h HTTPHosts) String() string { return table(h, HTTPHost.String) }

// complete gives the hosts of which no method is said their defaults.
func (h HTTPHosts) complete() {
	for name, host := range h {
		if len(host.Methods) == 0 {
			host.Methods = []string{"GET", "HEAD"}
			h[name] = host
		}
	}
}

var (
	hostName   = regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]*[a-z0-9])?|[0-9a-f:]*:[0-9a-f:]+)$`)
	portNumber = regexp.MustCompile(`^[1-9][0-9]{0,4}$`)
	headerName = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
)

// validate returns the key and the fault of the first host that cannot be called.
func (h HTTPHosts) validate() (string, error) {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		key, host := "http."+name, name
		if at, port, err := net.SplitHostPort(name); err == nil && portNumber.MatchString(port) {
			host = at
		}
		if !hostName.MatchString(host) {
			return key, fmt.Errorf("want a host in small letters such as example.org, or with a port, got %q", name)
		}
		for i, m := range h[name].Methods {
			if !slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}, m) {
				return fmt.Sprintf("%s.methods[%d]", key, i), fmt.Errorf("want GET, HEAD, POST, PUT, PATCH or DELETE, got %q", m)
			}
		}
		for header, file := range h[name].Secrets {
			if !headerName.MatchString(header) || !filepath.IsAbs(file) {
				return key + ".secrets", fmt.Errorf("want the name of a header and a file from the root on, got %s: %s", header, file)
			}
		}
	}
	return "", nil
}
