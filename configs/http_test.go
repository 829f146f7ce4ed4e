package configs

import (
	"strings"
	"testing"
)

func TestHostsAreRead(t *testing.T) {
	c, _, err := load(t, "http:\n  example.org: {methods: [GET]}\n  \"127.0.0.1:8080\": {methods: [GET, POST], private: true, secrets: {Authorization: /srv/key}}\n  \"[::1]:9\": {private: true}\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := sprint(c.HTTP), "127.0.0.1:8080: GET, POST, private, secret Authorization; [::1]:9: GET, HEAD, private; example.org: GET"; got != want {
		t.Errorf("shown as %q, want %q", got, want)
	}
}

func TestFaultsOfHostsNameTheirPlace(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"http:\n  \"http://example.org\": {methods: [GET]}\n", "want a host in small letters"},
		{"http:\n  example.org: {methods: [GET, TRACE]}\n", `:2:32): want GET, HEAD, POST, PUT, PATCH or DELETE, got "TRACE"`},
		{"http:\n  example.org: {secrets: {Authorization: key}}\n", "http.example.org.secrets (file "},
		{"http:\n  example.org: {method: GET}\n", `unknown field "method"`},
	} {
		if _, _, err := load(t, c.file, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.file, err, c.want)
		}
	}
}
