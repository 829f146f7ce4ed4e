package tools

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPublicAddresses(t *testing.T) {
	for addr, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "64:ff9b::808:808": true, "::ffff:8.8.8.8": true,
		"127.0.0.1": false, "127.1.2.3": false, "::1": false, "::ffff:127.0.0.1": false, "0.0.0.0": false, "::": false, "10.1.2.3": false,
		"172.16.0.1": false, "172.31.255.255": false, "172.32.0.1": true, "192.168.1.1": false, "169.254.169.254": false, "100.64.0.1": false,
		"100.128.0.1": true, "224.0.0.1": false, "255.255.255.255": false, "fe80::1": false, "fe80::1%eth0": false, "fc00::1": false, "fd12::1": false,
		"ff02::1": false, "64:ff9b::7f00:1": false, "64:ff9b::a9fe:a9fe": false, "64:ff9b:1::1": false, "2002:7f00:1::": false, "2001::1": false,
		"2001:db8::1": false, "::127.0.0.1": false, "::ffff:169.254.169.254": false,
	} {
		if got := public(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: public %t, want %t", addr, got, want)
		}
	}
}

// site is a listener on loopback, and its name as the settings have it.
func site(t *testing.T, h http.HandlerFunc) (address, name string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return s.URL, u.Host
}

// webRig has http.request with the hosts given.
func webRig(t *testing.T, hosts map[string]WebHost, change ...func(*Web)) *rig {
	return newRig(t, func(o *Options) {
		w := Web{Hosts: hosts, Bodies: o.Bodies}
		for _, c := range change {
			c(&w)
		}
		o.More = []Tool{w}
	})
}

func ask(method, address string) string {
	return string(encode(map[string]string{"method": method, "url": address}))
}

func TestWebCallsWhatIsNamed(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(secret, []byte("Bearer s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got *http.Request
	var sent []byte
	address, name := site(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		sent, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "made")
	})
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	r := webRig(t, map[string]WebHost{name: {Methods: []string{"GET", "POST"}, Private: true, Secrets: map[string]string{"Authorization": secret}}})
	input := string(encode(map[string]any{"method": "POST", "url": address + "/x", "headers": map[string]string{"X-Note": "n"}, "body": map[string]int{"a": 1}}))
	out := r.run("ab/3/0/work/2", "http.request", input)
	if out.Failure != nil {
		t.Fatal(out.Failure)
	}
	for header, want := range map[string]string{"Idempotency-Key": "ab/3/0", "Authorization": "Bearer s3cret", "X-Note": "n", "Content-Type": "application/json"} {
		if got.Header.Get(header) != want {
			t.Errorf("%s is %q, want %q", header, got.Header.Get(header), want)
		}
	}
	if string(sent) != `{"a":1}` || !strings.Contains(string(out.Value), `"status":201`) || out.After[0].Bytes != 4 || out.After[0].Text != "POST 201 Created" {
		t.Errorf("sent %s, got %s, %+v", sent, out.Value, out.After)
	}
	if strings.Contains(string(encode(out)), "s3cret") {
		t.Error("the record holds the secret")
	}
}

func TestWebRefuses(t *testing.T) {
	calls := 0
	address, name := site(t, func(http.ResponseWriter, *http.Request) { calls++ })
	_, port, _ := strings.Cut(name, ":")
	hosts := map[string]WebHost{name: {Methods: []string{"GET"}}, "localhost:" + port: {Methods: []string{"GET"}}, "[::ffff:127.0.0.1]:" + port: {Methods: []string{"GET"}},
		"0.0.0.0:" + port: {Methods: []string{"GET"}, Private: true}}
	r := webRig(t, hosts)
	for _, c := range []struct{ input, kind string }{
		{ask("GET", address), NotAllowed}, // named, and its address is not public
		{ask("GET", "http://localhost:"+port), NotAllowed},
		{ask("GET", "http://[::ffff:127.0.0.1]:"+port), NotAllowed},
		{ask("GET", "http://0.0.0.0:"+port), NotAllowed},
		{ask("POST", address), NotAllowed},
		{ask("GET", "http://127.0.0.1:1"), NotAllowed},
		{ask("GET", "http://user:pw@"+name), NotAllowed},
		{ask("GET", "file:///etc/passwd"), NotAllowed},
		{ask("GET", "gopher://"+name), NotAllowed},
		{ask("TRACE", address), InvalidInput},
		{`{"url":"` + address + `","headers":{"Host":"other"}}`, InvalidInput},
		{`{"url":"` + address + `","headers":{"authorization":"x"}}`, InvalidInput},
		{`{"url":"` + address + `","headers":{"X":"a\r\nHost: other"}}`, InvalidInput},
		{`{"url":"` + address + `","body":"x"}`, InvalidInput},
	} {
		if f := r.refused("k/"+c.input, "http.request", c.input, c.kind); f.Message == "" {
			t.Errorf("%s: says nothing", c.input)
		}
	}
	if calls != 0 {
		t.Errorf("%d refused calls arrived", calls)
	}
}

func TestWebRedirects(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(secret, []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	arrived, leaked := 0, ""
	other, otherName := site(t, func(_ http.ResponseWriter, r *http.Request) {
		arrived++
		leaked = r.Header.Get("X-Key") + r.Header.Get("X-Own")
	})
	hidden, hiddenName := site(t, func(http.ResponseWriter, *http.Request) { arrived += 100 })
	unnamed, _ := site(t, func(http.ResponseWriter, *http.Request) { arrived += 1000 })
	hops := 0
	first, firstName := site(t, func(w http.ResponseWriter, r *http.Request) {
		hops++
		http.Redirect(w, r, map[string]string{"/ok": other, "/hidden": hidden, "/unnamed": unnamed, "/loop": "/loop", "/file": "file:///etc/passwd"}[r.URL.Path], http.StatusFound)
	})
	r := webRig(t, map[string]WebHost{firstName: {Methods: []string{"GET", "POST"}, Private: true, Secrets: map[string]string{"X-Key": secret}},
		otherName: {Methods: []string{"GET"}, Private: true}, hiddenName: {Methods: []string{"GET"}}})
	if out := r.run("ok", "http.request", `{"url":"`+first+`/ok","headers":{"X-Own":"mine"}}`); out.Failure != nil || arrived != 1 || leaked != "" {
		t.Errorf("%v, arrived %d, with %q", out.Failure, arrived, leaked)
	}
	for _, path := range []string{"/hidden", "/unnamed", "/file"} {
		r.refused("k"+path, "http.request", ask("GET", first+path), NotAllowed)
	}
	hops = 0
	if r.refused("loop", "http.request", ask("GET", first+"/loop"), NotAllowed); hops != 6 {
		t.Errorf("%d requests of a loop", hops)
	}
	if v := r.value("post", "http.request", ask("POST", first+"/ok")); v["status"] != float64(302) || arrived != 1 {
		t.Errorf("a write was sent on: %v, arrived %d", v, arrived)
	}
}

func TestWebBoundsAndLostWrites(t *testing.T) {
	hang := make(chan struct{})
	address, name := site(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-hang
		}
		if r.URL.Path == "/gone" {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, strings.Repeat("x", 100))
	})
	t.Cleanup(func() { close(hang) }) // before the listener closes, which waits for its handlers
	hosts := map[string]WebHost{name: {Methods: []string{"GET", "POST"}, Private: true}, "127.0.0.1:1": {Methods: []string{"POST"}, Private: true}}
	r := webRig(t, hosts, func(w *Web) { w.MaxBytes, w.Timeout = 10, 200*time.Millisecond })
	if v := r.value("big", "http.request", ask("GET", address)); v["truncated"] != true || v["body"].(map[string]any)["bytes"] != float64(10) {
		t.Errorf("%v", v)
	}
	if f := r.refused("slow", "http.request", ask("GET", address+"/slow"), IOError); !f.Again {
		t.Error("a slow look is not tried again")
	}
	if f := r.refused("down", "http.request", ask("POST", "http://127.0.0.1:1"), IOError); !f.Again {
		t.Error("a write that never left is not tried again")
	}
	for _, path := range []string{"/slow", "/gone"} {
		r.refused("w"+path, "http.request", ask("POST", address+path), EffectUnsure)
		if c, err := r.Check(t.Context(), r.call("w"+path, "http.request", ask("POST", address+path))); err != nil || c.State != Unknown {
			t.Errorf("%s: %+v, %v", path, c, err)
		}
	}
	crash := errors.New("power lost")
	r.notes.saved = func(Record) error { return crash }
	if _, err := r.Run(t.Context(), r.call("k", "http.request", ask("GET", address))); !errors.Is(err, crash) {
		t.Fatal(err)
	}
	if c, _ := r.Check(t.Context(), r.call("k", "http.request", ask("GET", address))); c.State != NotDone {
		t.Errorf("a look after a crash: %+v", c)
	}
}
